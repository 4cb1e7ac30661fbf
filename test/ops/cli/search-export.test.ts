/** `nearcrawl search export` as a command and as a process; interruptions are tested in test/search/export. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { seededRandom } from "#core/random";
import type { Database } from "#db/server-database";
import { progressText } from "#ops/cli/search/export-command";
import { FaultyDoor } from "../../engine/faulty-door.ts";
import { documentsOf, openSearchClasses, sharedOpenSearch } from "../../engine/open-search.ts";
import { makeCertificate } from "../../migrating-crawler/support/secure-origin.ts";
import { builtProgram } from "../../support/built-command.ts";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

const pages = 6000;

let database: Database;
let folder: string;
const classes = openSearchClasses();
let url: string;
let index: string;
let made = 0;
let engine: FaultyDoor;
let origin: string;
beforeAll(async () => {
  url = classes === null ? "http://127.0.0.1:1" : await sharedOpenSearch(classes);
  folder = temporaryFolder("nearcrawl-export-");
  database = await testDatabase();
  await seedWorld(database.pool);
  await database.pool.query(
    `insert into page (host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, language, text_search_config,
       title, noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes)
     select n % 50, n, 'https://host-' || n % 50 || '.example/' || n, 'host-' || n % 50 || '.example',
       (select min(crawler_id) from crawler), now(), 200, 'text/html', 'en', 'english', 'Page ' || n, n % 100 = 0,
       repeat('0', 64), repeat('0', 16), 5, 100, 100, 100
     from generate_series(1, ${pages}) n;
     insert into document (host_hash, url_hash, description, headings, text)
     select n % 50, n, '', '[]', repeat('A text of some length. ', 10) from generate_series(1, ${pages}) n`,
  );
});
afterAll(async () => await database.close());
beforeEach(async () => {
  index = `export-${process.pid}-${made++}`;
  engine = new FaultyDoor(url);
  origin = await engine.listen();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await engine.close();
});

const placed = () => ["--database-url", database.url, "--schema", database.schema, "--home", folder];
const run = async (...args: readonly string[]) =>
  await inProcess(commandNamed("search"), ["export", ...args, ...placed()]);
const toEngine = async (...args: readonly string[]) =>
  await run("--to", "opensearch", "--url", `${origin}/${index}`, ...args);

async function change(count: number, title: string, random: () => number): Promise<void> {
  const numbers = Array.from({ length: count }, () => 1 + Math.floor(random() * pages));
  await database.pool.query(
    `with changed as (
       update page set title = $2 || url_hash where url_hash = any($1::bigint[]) returning host_hash, url_hash, url
     )
     insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at)
     select host_hash, url_hash, url, 'changed', now() from changed`,
    [numbers, title],
  );
  while ((await numberChanges(database.pool, worldNow)) > 0);
}

async function shown(): Promise<Map<string, string>> {
  const { rows } = await database.pool.query<{ url: string; title: string }>(
    "select url, title from page where not noindex order by url",
  );
  return new Map(rows.map(({ url, title }) => [url, title]));
}

const titles = async () =>
  new Map(
    [...(await documentsOf(`${url}/${index}`)).values()]
      .map(({ url, title }) => [String(url), String(title)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
const sorted = (map: ReadonlyMap<string, string>) => new Map([...map].sort(([a], [b]) => (a < b ? -1 : 1)));

describe("nearcrawl search export", () => {
  it.skipIf(classes === null)("exports to OpenSearch with a count, then only the changes", async () => {
    const first = await toEngine("--json");
    await change(3, "Changed ", seededRandom(1));
    const second = await toEngine();

    expect(first.code).toBe(0);
    expect(JSON.parse(first.out)).toMatchObject({
      ...{ to: `${origin}/${index}`, full: "the index was not there", indexed: 5940, deleted: 60 },
      ...{ alreadyThere: 0, rejected: 0, removed: 0, isCutShort: false },
    });
    expect(first.err).toContain("nearcrawl: exporting all pages: the index was not there");
    expect(second.out).toMatch(/^up to date: http.*\nwhat changed: [23] documents written, [01] deleted in /);
    expect(await titles()).toEqual(sorted(await shown()));
  });

  it.skipIf(classes === null)("ends with 1 if documents were refused, and names the first", async () => {
    const contentType = "update page set content_type = $1 where url_hash = 7";
    // Longer than a term of the engine may be.
    await database.pool.query(contentType, ["x".repeat(40_000)]);

    const { code, out, err } = await toEngine();
    await database.pool.query(contentType, ["text/html"]);

    expect(code).toBe(1);
    expect(out).toContain("1 document refused by the target");
    expect(err).toMatch(
      /document [0-9a-f]{32} \(https:\/\/host-7\.example\/7\) is left out: illegal_argument_exception: /,
    );
  });

  it("allows one export to a target at a time", async () => {
    const child = spawn(process.execPath, await typed(), { stdio: "ignore", env: environment() });
    const closed = once(child, "close");
    // It holds the lock and waits for the target.
    engine.refuse = () => ({ status: 503 });
    await until(() => engine.requests.length > 0, 50_000);

    const second = await toEngine();

    expect(second).toMatchObject({
      code: 2,
      err: `nearcrawl: another export to ${origin}/${index} is running\n`,
    });
    child.kill("SIGKILL");
    await closed;
  });

  it("sends the environment's credentials, and never prints them", async () => {
    vi.stubEnv("NEARCRAWL_OPENSEARCH_USER", "exporter");
    vi.stubEnv("NEARCRAWL_OPENSEARCH_PASSWORD", "secret");
    engine.refuse = () => ({ status: 401 });

    const { code, err } = await toEngine();
    const open = await run("--to", "opensearch", "--url", "http://search.example.org:9200/pages");

    expect({ code, err }).toEqual({ code: 1, err: `nearcrawl: ${origin}/${index}: status 401\n` });
    expect(engine.requests[0]!.authorization).toBe(
      `Basic ${Buffer.from("exporter:secret").toString("base64")}`,
    );
    expect(open).toMatchObject({
      code: 2,
      err: expect.stringContaining("credentials would go there unencrypted; use https"),
    });
  });

  it.skipIf(classes === null)("trusts only the given authority", async () => {
    const { certificate, key, remove } = makeCertificate("localhost");
    const secure = new FaultyDoor(url, { cert: certificate, key });
    const place = (await secure.listen()).replace("http://127.0.0.1", "https://localhost");
    const ca = join(folder, "ca.pem");
    writeFileSync(ca, certificate);

    const strange = await run("--to", "opensearch", "--url", `${place}/${index}`);
    const known = await run("--to", "opensearch", "--url", `${place}/${index}`, "--ca", ca);
    await secure.close();
    remove();

    expect(strange).toMatchObject({ code: 1, err: expect.stringMatching(/self.signed certificate/) });
    expect(known.code).toBe(0);
    expect((await titles()).size).toBe(5940);
  });

  it("writes lines to standard output, and messages to standard error", async () => {
    const { code, out, err } = await run("--to", "ndjson", "--out", "-", "--json");

    const lines = out.split("\n").slice(0, -1);
    expect(code).toBe(0);
    expect(lines).toHaveLength(2 + pages);
    expect(JSON.parse(lines[1]!)).toMatchObject({
      op: expect.stringMatching(/index|delete/),
      version: expect.any(Number),
    });
    expect(JSON.parse(err.slice(err.indexOf("{")))).toMatchObject({ to: "standard output", removed: null });
  });

  it.each([
    [["--to", "opensearch"], "--to opensearch needs --url https://HOST:9200/INDEX"],
    [
      ["--to", "opensearch", "--url", "search.example.org"],
      "--url search.example.org: must be an address such as",
    ],
    [
      ["--to", "opensearch", "--url", "https://a:b@search.example.org"],
      "--url: credentials belong into NEARCRAWL_OPENSEARCH_USER",
    ],
    [["--to", "opensearch", "--url", "https://search.example.org/Pages"], '"Pages" is no name of an index'],
    [["--to", "opensearch", "--url", "https://search.example.org/_all/x"], '"_all/x" is no name of an index'],
    [
      ["--to", "opensearch", "--url", "https://s.example/p", "--out", "x"],
      "--out x: not for --to opensearch",
    ],
    [
      ["--to", "opensearch", "--url", "https://s.example/p", "--ca", "/nowhere"],
      "--ca /nowhere: cannot be read: ENOENT",
    ],
    [["--to", "ndjson"], "--to ndjson needs --out FILE"],
    [["--to", "ndjson", "--out", "/"], "/ is no file"],
    [["--to", "solr"], "Allowed choices are opensearch, ndjson"],
  ])("refuses %j", async (args, words) => {
    const { code, err } = await run(...args);

    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(words) });
  });

  it("searches for its own name when it is quoted or not the first word", async () => {
    const searched = async (...words: readonly string[]) =>
      await inProcess(commandNamed("search"), [...words, ...placed()]);

    expect(await searched('"export"')).toMatchObject({ code: 3, err: "" });
    expect(await searched("length", "export")).toMatchObject({ code: 0, err: "" });
  });

  it("shows progress, rate and time left", () => {
    expect(progressText({ phase: "all pages", done: 5000, expected: 20_000 }, 10)).toBe(
      "all pages: 5,000 of about 20,000 · 500/s · 30 s left",
    );
    expect(progressText({ phase: "changes", done: 0, expected: 0 }, 0)).toBe("changes: 0");
  });
});

const environment = () => ({ ...process.env, NODE_NO_WARNINGS: "1" });

async function typed(...target: readonly string[]): Promise<string[]> {
  const where = target.length > 0 ? target : ["--to", "opensearch", "--url", `${origin}/${index}`];
  return [await builtProgram("ops/cli/main"), "search", "export", ...where, ...placed()];
}

describe("an export as a process", () => {
  it.skipIf(classes === null)("follows what changes, until it is interrupted", async () => {
    const child = spawn(process.execPath, [...(await typed()), "--follow"], { env: environment() });
    const closed = once(child, "close");
    let out = "";
    child.stdout.on("data", (text) => {
      out += text;
    });
    await until(async () => (await titles()).size === 5940, 60_000);
    await change(1, "Followed ", () => 0.5);

    await until(async () => [...(await titles()).values()].includes("Followed 3001"), 60_000);
    child.kill("SIGINT");

    expect((await closed)[0]).toBe(130);
    // The interrupt may precede the engine's answer to the last batch.
    expect(out).toMatch(
      /^(up to date|broken off, to be gone on with): .*\nall pages: 5,94\d documents written/,
    );
  });

  it("ends at once when it is interrupted while its target is away", async () => {
    engine.refuse = () => ({ status: 503, headers: { "retry-after": "100" } });
    const child = spawn(process.execPath, await typed(), { stdio: "ignore", env: environment() });
    const closed = once(child, "close");
    await until(() => engine.requests.length > 0, 50_000);
    child.kill("SIGINT");

    expect((await closed)[0]).toBe(130);
    expect(engine.requests).toHaveLength(1);
  });
});
