/** The rules of the house (ops/architecture.md), held against every source file. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { wings } from "#ops/house";
import { readHouse, wingSizes } from "./house.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const house = readHouse(root);
const { files } = house;
const thatSay = (form: RegExp) => files.filter(({ code }) => form.test(code)).map(({ path }) => path);
const imports = files.flatMap((file) =>
  [...file.imports, ...file.packages].map((to) => ({ from: file.path, to })),
);
const importing = (folder: string, forbidden: RegExp) =>
  imports
    .filter(({ from, to }) => from.startsWith(folder) && forbidden.test(to))
    .map(({ from, to }) => `${from} imports ${to}`);
const foldersIn = (path: string) =>
  readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

it("sees the source", () => {
  expect(house.files.length).toBeGreaterThan(500);
  expect(house.files.find(({ path }) => path === "coordinator/main.ts")?.imports.length).toBeGreaterThan(5);
});

it("imports nothing in a circle, types included", () => {
  expect(house.circles).toEqual([]);
});

it("keeps each wing within its lines: what needs more says what goes (ops/house)", () => {
  expect(wingSizes(house).filter(({ lines, most }) => lines > most)).toEqual([]);
});

it("imports nothing of a higher storey", () => {
  expect(house.upwardImports).toEqual([]);
});

it("does in no file what the file's name does not say", () => {
  expect(house.misnamed).toEqual([]);
});

it("has no line wider than 160 columns", () => {
  expect(house.tooWide).toEqual([]);
});

it("keeps the tests of a room in a folder of the room's name", () => {
  const houses = ["migrating-crawler", "rir-import", "ops", "db"];
  const ofNoRoom = [
    "bench",
    "chaos",
    "coordinator",
    "end-to-end",
    "engine",
    "fixtures",
    "fuzz",
    "lab",
    "support",
  ];

  expect(
    foldersIn("test").filter(
      (name) => ![...wings.flatMap(({ rooms }) => rooms), ...houses, ...ofNoRoom].includes(name),
    ),
  ).toEqual([]);
});

it("ends a session or a process where the threat model says so, and nowhere else", () => {
  const threats = readFileSync(join(root, "ops/threat-model.md"), "utf8");
  const [section = ""] =
    threats.split("## Where a byte from outside ends something\n")[1]?.split("\n## ") ?? [];
  const listed = [...section.matchAll(/([a-z][\w/-]+\.ts) (\d+)/g)].map(([, path, places]) => [
    path,
    Number(places),
  ]);
  const ofProcess = /process\.(exit|abort)\(|process\.exitCode =/g;
  const ofSession =
    /new ProtocolError\(|\.refuse\(|\.terminate\(|(this|#connection\?)\.end\(|turnAway\(|(stream|socket|response)\.(destroy|end)\(/g;
  const speaks =
    /^(coordinator\/(run\/gateway|protocol|crawl\/changes|crawl\/federation)|migrating-crawler\/link)\//;
  const placesIn = (within: RegExp, form: RegExp) =>
    files.flatMap(({ path, code }) => {
      const places = within.test(path) ? (code.match(form)?.length ?? 0) : 0;
      return places === 0 ? [] : [[path, places]];
    });

  expect(Object.fromEntries(listed)).toEqual(
    Object.fromEntries([
      ...placesIn(speaks, ofSession),
      ...placesIn(/^(coordinator|migrating-crawler|rir-import)\//, ofProcess),
    ]),
  );
});

it("knows in the protocol nothing above the core", () => {
  const above =
    /^(?!coordinator\/(core|protocol)\/)(coordinator|db|migrating-crawler|rir-import|ops)\/|^(pg|undici|fastify|ws)\b/;

  expect(importing("coordinator/protocol/", above)).toEqual([]);
  expect(importing("coordinator/core/", above)).toEqual([]);
});

it("lets the crawler know the protocol, core/ip, core/words, five files of the core, and nothing else of ours", () => {
  const others =
    /^(?!coordinator\/(protocol\/|core\/(?:ip|words)\/|core\/(errors|foreign-dates|html|running-process|timer-ms)\.ts$))(coordinator|db|rir-import|ops)\//;

  expect(importing("migrating-crawler/", others)).toEqual([]);
});

it("reaches over a top folder's wall by its door alone", () => {
  const reach = files.flatMap(({ path, code }) =>
    [...code.matchAll(/\bfrom "(\.[^"]+)"/g)]
      .map(([, to = ""]) => posix.join(posix.dirname(path), to))
      .filter((to) => to.split("/")[0] !== path.split("/")[0])
      .map((to) => `${path} imports ${to}`),
  );

  expect(reach).toEqual([]);
});

it("reads the environment and the arguments in commands alone", () => {
  const readers = thatSay(/process\.(env|argv)\b/).filter((path) => !path.startsWith("ops/"));

  expect(readers).toEqual(["migrating-crawler/cli/main.ts", "migrating-crawler/main.ts"]);
});

it("lets few files of the crawler reach the network or start a program, and one of them open connections", () => {
  const means =
    /^import (?!type\b)[^"]*? from "(?:node:)?(net|tls|dgram|dns\/promises|https?|http2|child_process|undici|ws|socks)";/gm;
  const ofCrawler = files.filter(({ path }) => path.startsWith("migrating-crawler/"));
  const found = ofCrawler.flatMap(({ path, code }) => {
    const names = [...code.matchAll(means)].map(([, name]) => name);
    return names.length === 0 ? [] : [`${path.replace("migrating-crawler/", "")}: ${names.join(", ")}`];
  });

  expect(found.sort()).toEqual([
    // Over a connection that coordinator-socket.ts or connector.ts hands to it.
    "check/coordinator-findings.ts: http",
    "check/machine-check.ts: dns/promises",
    "check/proposed-limits.ts: http, https",
    "cli/leave-command.ts: child_process",
    "fetch/http1-transport.ts: undici",
    "fetch/site-client.ts: http2",
    "link/link-connection.ts: ws",
    // The authorities that the system trusts, and a datagram socket that sends nothing: it asks the system for a route.
    "net/connector.ts: dgram, tls",
    "net/dial.ts: net, tls",
    "net/name-cache.ts: dns/promises",
    "probe/icmp-echo.ts: child_process",
    // Within the machine: Unix sockets of the crawler's folder, and the status page.
    "status/control-server.ts: http, net",
    "supervisor/crawler-child.ts: child_process",
    "supervisor/release-source.ts: http, https",
  ]);
  expect(ofCrawler.filter(({ code }) => /\b(globalThis|await|return) ?\.?fetch\(/.test(code))).toEqual([]);
});

it("names in its comments and documents only files that exist", () => {
  const ending = /(\.(test|browser\.test|bench))?\.(ts|md)$/;
  const folders = ["coordinator", "migrating-crawler", "rir-import", "ops", "db", "test"];
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)),
  );
  const known = new Set<string>();
  const firsts = new Set(folders);
  for (const path of paths) {
    const parts = path.replace(ending, "").split("/");
    for (const from of parts.keys())
      for (const to of parts.keys()) known.add(parts.slice(from, to + 1).join("/"));
    for (const folder of parts.slice(0, -1)) firsts.add(folder);
  }
  const isMissing = (name: string) => {
    const isFile =
      ending.test(name) || (/^[a-z][\w-]*(\/[\w-]+)+$/.test(name) && firsts.has(name.split("/")[0]!));
    return isFile && /^[a-z0-9./-]+$/.test(name) && !known.has(name.replace(ending, ""));
  };
  const namesIn = (path: string) => {
    const text = readFileSync(join(root, path), "utf8");
    const places = path.endsWith(".md")
      ? (text.match(/`test\/[^`]+\.ts`/g) ?? [])
      : text.split("\n").filter((line) => /^\s*(\/\*\*|\*|\/\/)/.test(line));
    return places
      .flatMap((place) => place.match(/[\w./@:#$-]+/g) ?? [])
      .map((name) => name.replace(/[.:]+$/, ""));
  };
  // Decisions and results of benches name what existed on their day.
  const read = paths.filter((path) => /\.(ts|md)$/.test(path) && !/fixtures|results|decisions/.test(path));

  expect(
    read.flatMap((path) =>
      namesIn(path)
        .filter(isMissing)
        .map((name) => `${path}: ${name}`),
    ),
  ).toEqual([]);
});

it("asks nowhere URL.canParse, which Node 20 answers wrongly", () => {
  expect(thatSay(/URL\.canParse\(/)).toEqual([]);
});

it("reads dates of foreign text nowhere by Date.parse or new Date, which take them for the machine's own time", () => {
  const readsForeignText =
    /^(migrating-crawler\/(check|crawl|extract|fetch|limits|net|preferences|probe|traps)|rir-import\/formats)\/|^coordinator\/web\/validators/;
  const isNumber = /^\)|ms\b|Ms\b|\* 1000|Date\.(UTC|now)|T00:00:00Z/;
  const found = files
    .filter(({ path }) => readsForeignText.test(path))
    .flatMap(({ path, code }) =>
      [...code.matchAll(/\bDate\.parse\(.*|\bnew Date\((.*)/g)]
        .filter(([, argument]) => argument === undefined || !isNumber.test(argument))
        .map(([line]) => `${path}: ${line}`),
    );

  expect(found).toEqual([]);
});

it("hands to Node's timers no time that was computed, unless timerMs made it one", () => {
  const computed = files.flatMap(({ path, code }) =>
    [...code.matchAll(/(?<![.#\w])(?:setTimeout|setInterval|delay|AbortSignal\.timeout)\(/g)]
      .flatMap(({ index, 0: { length } }) => argumentsAt(code, index + length))
      .filter((given) => /^[^"`{>]*\w[^"`{>]*$/.test(given) && /\s[-+*/]\s|Math\./.test(given))
      .filter((given) => !given.startsWith("timerMs("))
      .map((given) => `${path}: ${given}`),
  );

  expect(computed).toEqual([]);
});

/** Of a call whose parenthesis was opened just before. */
function argumentsAt(code: string, start: number): string[] {
  const given: string[] = [];
  let [depth, from, at] = [1, start, start];
  for (; depth > 0 && at < code.length; at++) {
    const sign = code.charAt(at);
    if ("([{".includes(sign)) depth++;
    else if (")]}".includes(sign)) depth--;
    if (depth === 0 || (depth === 1 && sign === ",")) {
      given.push(code.slice(from, at).trim());
      from = at + 1;
    }
  }
  return given;
}
