/** From nothing to a coordinator with a settings file: `init` writes it, `doctor` checks it, `coordinator` uses it. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import type { Database } from "#db/server-database";
import { doctorCommand } from "#ops/cli/commands/doctor";
import { coordinatorUnit, initCommand, usualCoordinatorPaths } from "#ops/cli/commands/init";
import { readCoordinatorSettings } from "#ops/cli/setup/coordinator-settings";
import {
  clockFinding,
  diskFinding,
  expiryFinding,
  listenFindings,
  nodeFinding,
  searchFindings,
  serverFindings,
  versionFinding,
} from "#ops/cli/setup/doctor-checks";
import { builtProgram, nearcrawl } from "../../support/built-command.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { freePort } from "../../support/free-port.ts";
import { type MailDns, startMailDns } from "../../support/mail-dns.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

let dns: MailDns;
beforeAll(async () => {
  dns = await startMailDns();
});
afterAll(async () => await dns?.close());

const newHome = () => join(temporaryFolder("nearcrawl-init-"), "home");
const initOptions = (home: string) => ["--json", "--home", home, "--resolver", dns.address];
const init = async (home: string, ...args: readonly string[]) =>
  await inProcess(initCommand(), [...initOptions(home), ...args]);
const findingsOf = (out: string): readonly { state: string; subject: string; words: string }[] =>
  JSON.parse(out).findings;

describe("init", () => {
  it("writes settings readable only by this user, a unit, and the wanted registries; and overwrites nothing", async () => {
    const home = newHome();
    const contact = ["--contact", "noc@mail.test-domain.org"];

    const made = await init(home, ...contact, "--registries", "ripencc", "arin");
    const settings = readFileSync(join(home, "coordinator.toml"), "utf8");
    const again = await init(home, "--contact", "other@address.test-domain.org");
    const unchanged = readFileSync(join(home, "coordinator.toml"), "utf8");
    const forced = await init(home, "--contact", "other@address.test-domain.org", "--force");
    const sources = JSON.parse(readFileSync(join(home, "registry-sources.json"), "utf8"));

    expect([made.code, again.code, forced.code]).toEqual([0, 2, 0]);
    expect(again.err).toContain("is there already");
    expect(unchanged).toBe(settings);
    expect(statSync(join(home, "coordinator.toml")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(home, "nearcrawl-coordinator.service"), "utf8")).toContain(
      `NEARCRAWL_HOME=${home}`,
    );
    expect(Object.keys(sources.sources)).toEqual(
      expect.arrayContaining(["apnic-inetnum", "lacnic-database"]),
    );
    expect(Object.keys(sources.sources).filter((name) => /^(ripencc|arin)/.test(name))).toEqual([]);
  });

  it.each([
    [["--contact", "noc@refuses.test-domain.org"], "takes no mail (a null MX record"],
    [["--contact", "noc@missing.test-domain.org"], "missing.test-domain.org does not exist"],
    [["--contact", "noc@empty.test-domain.org"], "neither an MX record nor an address"],
    [
      ["--contact", "http://198.51.100.1:9/", "--resolver", "127.0.0.1:9"],
      "must be an e-mail address or an http(s) URL",
    ],
    [["--contact", "nobody"], "must be an e-mail address or an http(s) URL"],
    [["--contact", "noc@mail.test-domain.org", "--tls-key", "/etc/key.pem"], "go together"],
    [["--contact", "noc@mail.test-domain.org", "--listen", "0.0.0.0:80"], "reachable from outside"],
    [
      ["--contact", "noc@mail.test-domain.org", "--database-url", "mysql://x"],
      "is not of the form postgresql://",
    ],
    [["--contact", "noc@mail.test-domain.org", "--registries", "verisign"], "known are iana, afrinic"],
  ])("%j is refused with the reason, and nothing is written", async (args, words) => {
    const home = newHome();

    const { code, err } = await init(home, ...args);

    expect([code, err]).toEqual([2, expect.stringContaining(words)]);
    expect(existsSync(home)).toBe(false);
  });

  it("states the crawl's scope and the defaults of new crawls: rates per page, and linked pages first", async () => {
    const [home, other] = [newHome(), newHome()];
    const contact = ["--contact", "noc@mail.test-domain.org"];

    const [made, followed, wrong] = [
      await init(home, ...contact),
      await init(other, ...contact, "--scope", "follow-links"),
      await init(newHome(), ...contact, "--scope", "everything"),
    ];
    const [these, links] = [home, other].map((at) =>
      readCoordinatorConfig(readCoordinatorSettings(join(at, "coordinator.toml"))),
    );
    const doctor = await inProcess(doctorCommand(), ["--json", "--home", home]);
    const found = findingsOf(doctor.out).filter(({ subject }) =>
      ["scope", "recrawl", "order"].includes(subject),
    );

    expect([made.code, followed.code, wrong.code]).toEqual([0, 0, 2]);
    expect(wrong.err).toContain("must be one of these-sites, follow-links");
    expect([these, links].map((config) => config!.scope.admitNewHosts)).toEqual([false, true]);
    expect(these).toMatchObject({ recrawl: { strategy: "optimal" }, frontier: { order: "back-links" } });
    expect(found.map(({ state, subject }) => [subject, state])).toEqual([
      ["scope", "note"],
      ["recrawl", "ok"],
      ["order", "ok"],
    ]);
    expect(found[0]!.words).toContain("nearcrawl policy set scope.admitNewHosts=yes follows them");
  });

  it("keeps the earlier defaults for a settings file without them", async () => {
    const home = newHome();
    mkdirSync(home);
    writeFileSync(join(home, "coordinator.toml"), 'contact = "noc@mail.test-domain.org"\n');

    const config = readCoordinatorConfig(readCoordinatorSettings(join(home, "coordinator.toml")));
    const { out } = await inProcess(doctorCommand(), ["--json", "--home", home]);
    const words = findingsOf(out).map((finding) => `${finding.state} ${finding.words}`);

    expect(config).toMatchObject({ recrawl: { strategy: "fixed" }, frontier: { order: "breadth-first" } });
    expect(words).toContainEqual(
      "note every page is fetched again after 168 hours, however often it changes: nearcrawl " +
        "policy set recrawl.strategy=optimal goes by how often each changes.",
    );
    expect(words).toContainEqual(
      expect.stringMatching(/^note of a host's URLs those due longest come first/),
    );
  });

  it("does not prompt for the real web's contact without a terminal, and reports what is missing", async () => {
    const home = newHome();

    const { code, err } = await inProcess(initCommand(), ["--home", home]);

    expect([code, err]).toEqual([2, expect.stringContaining("--contact is missing")]);
    expect(existsSync(home)).toBe(false);
  });

  it("writes the shipped unit", () => {
    const shipped = resolve(import.meta.dirname, "../../../ops/systemd/nearcrawl-coordinator.service");

    expect(readFileSync(shipped, "utf8")).toBe(coordinatorUnit(usualCoordinatorPaths));
    expect(() => coordinatorUnit({ program: ["/opt/with blank"], home: "/var/lib/x" })).toThrow(
      "absolute path",
    );
  });

  // Issue 41: ProtectHome=yes hid the program, the embedded Postgres, the folder and the key.
  it("writes a unit that shows exactly the needed folders below a home", () => {
    const modules = "/home/ann/.nvm/versions/node/v22.1.0/lib/node_modules";
    const text = coordinatorUnit({
      program: ["/home/ann/.nvm/versions/node/v22.1.0/bin/node", `${modules}/nearcrawl/dist/ops/cli/main.js`],
      home: "/home/ann/near",
      tlsFiles: ["/home/ann/tls/key.pem", "/etc/tls/certificate.pem"],
    });
    const checkout = coordinatorUnit({
      program: ["/usr/bin/node", "/root/near/dist/ops/cli/main.js"],
      home: "/srv/near",
    });

    expect(text).toContain(
      `ProtectHome=tmpfs\nBindReadOnlyPaths=/home/ann/.nvm/versions/node/v22.1.0/bin/node ${modules} /home/ann/tls\nBindPaths=/home/ann/near\n`,
    );
    expect(checkout).toContain("ProtectHome=tmpfs\nBindReadOnlyPaths=/root/near\nPrivateTmp");
  });
});

describe("a coordinator by its settings file", { timeout: 90_000 }, () => {
  let database: Database;
  let folder: string;
  let home: string;
  let taken: Server;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    database = await testDatabase();
    folder = temporaryFolder("nearcrawl-deployed-");
    home = join(folder, "home");
    taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const key = [
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-keyout",
      join(folder, "key.pem"),
    ];
    execFileSync(
      "openssl",
      ["req", "-x509", "-days", "30", ...names, ...key, "-out", join(folder, "cert.pem")],
      { stdio: "ignore" },
    );
    execFileSync("openssl", ["genrsa", "-out", join(folder, "other-key.pem"), "2048"], { stdio: "ignore" });
  });
  afterAll(async () => {
    for (const child of children) child.kill("SIGTERM");
    await until(
      () => children.every(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null),
      30_000,
    );
    taken?.close();
    await database?.close();
  });

  /** The tests' own server is fast and unsafe, which doctor rightly reports. */
  const toBeMended = (out: string) =>
    findingsOf(out).filter(({ state, words }) => state === "fix" && !words.startsWith("fsync"));
  const run = async (...args: readonly string[]) =>
    await nearcrawl([...args, "--home", home], {
      env: { NEARCRAWL_SCHEMA: database.schema, NODE_EXTRA_CA_CERTS: join(folder, "cert.pem") },
    });

  it("runs with TLS by init's file alone; commands find its database; doctor has nothing to fix", async () => {
    const port = await freePort();
    const tls = ["--tls-certificate", join(folder, "cert.pem"), "--tls-key", join(folder, "key.pem")];
    const place = [
      "--listen",
      `127.0.0.1:${port}`,
      "--public-url",
      `https://localhost:${port}`,
      "--database-url",
      database.url,
    ];
    const contact = ["--contact", "noc@mail.test-domain.org"];
    const made = await nearcrawl(["init", ...initOptions(home), ...contact, ...tls, ...place]);
    const before = await run("doctor", "--json");
    const child = spawn(
      process.execPath,
      [await builtProgram("ops/cli/main"), "coordinator", "--home", home],
      {
        env: { ...process.env, NEARCRAWL_SCHEMA: database.schema },
      },
    );
    children.push(child);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (said += String(piece)));
    await until(() => said.includes("coordinator at https:") && said.includes("no registry"), 60_000);
    const added = await run("urls", "add", "https://www.test-domain.org/");
    const running = await run("doctor", "--json");

    expect([made.code, made.err]).toEqual([0, ""]);
    expect(toBeMended(before.out)).toEqual([]);
    expect(said).toContain("no registry is imported: the whole address space is one subnet");
    expect([added.code, added.out]).toEqual([0, expect.stringContaining("1 new")]);
    const states = Object.fromEntries(findingsOf(running.out).map(({ subject, state }) => [subject, state]));
    expect(toBeMended(running.out)).toEqual([]);
    expect(states).toMatchObject({
      settings: "ok",
      contact: "ok",
      tls: "ok",
      port: "ok",
      address: "ok",
      reading: "ok",
      release: "ok",
      search: "ok",
      urls: "ok",
    });
  });

  it("reports what is wrong, where, and what to do, also by its exit code", async () => {
    const file = join(home, "coordinator.toml");
    const right = readFileSync(file, "utf8");
    const doctorOf = async (
      text: string,
      doctor = () => inProcess(doctorCommand(), ["--home", home, "--json"]),
    ) => {
      writeFileSync(file, text);
      const { code, out } = await doctor();
      return [
        code,
        ...findingsOf(out)
          .filter(({ state }) => state === "fix")
          .map(({ words }) => words),
      ];
    };
    const { port } = taken.address() as { port: number };
    const wrongs = [
      await doctorOf(`${right}\nkeyfile = "x"\n`),
      await doctorOf(right.replace("[listen]", "[listen")),
      await doctorOf(right.replace("key.pem", "other-key.pem")),
      // A process states at its start which certificates it trusts.
      await doctorOf(right.replace("https://localhost", "https://other.test-domain.org"), () =>
        run("doctor", "--json"),
      ),
      await doctorOf(right.replace(database.url, "postgres://nobody@127.0.0.1:1/none")),
    ];
    writeFileSync(file, right);
    const elsewhere = newHome();
    await init(elsewhere, "--contact", "noc@mail.test-domain.org", "--listen", `127.0.0.1:${port}`);
    const occupied = await inProcess(doctorCommand(), ["--home", elsewhere]);

    expect(wrongs.map(([code]) => code)).toEqual([4, 4, 4, 4, 4]);
    expect(wrongs[0]![1]).toMatch(/coordinator\.toml:\d+: tls\.keyfile: there is no such setting/);
    expect(wrongs[1]![1]).toMatch(/coordinator\.toml/);
    expect(wrongs[2]![1]).toContain("is not the key of");
    expect(wrongs[3]!.join()).toMatch(/does not exist.*is not for other\.test-domain\.org/s);
    expect(wrongs[4]!.join()).toContain("is the server up, and databaseUrl right?");
    expect([occupied.code, occupied.out]).toEqual([
      4,
      expect.stringMatching(/fix +port +something else listens/),
    ]);
    expect(readdirSync(elsewhere).sort()).toEqual(["coordinator.toml", "nearcrawl-coordinator.service"]);
  });

  it.skipIf(process.getuid?.() === 0)(
    "a settings file of somebody else is named with the reason",
    async () => {
      chmodSync(join(home, "coordinator.toml"), 0);
      const { code, err } = await run("urls", "status", "https://a.example/");
      chmodSync(join(home, "coordinator.toml"), 0o600);

      expect([code, err]).toEqual([2, expect.stringContaining("coordinator.toml")]);
    },
  );
});

it("says why searches lack what was crawled, as the coordinator that runs in this home does", async () => {
  const [home, schema] = [temporaryFolder("nearcrawl-doctor-"), "public"];
  const alert = { name: "search-behind", words: "Its disk is full.", advice: "Free it." };
  const list = { alerts: [], acknowledged: [alert], muted: [] };
  const coordinator = createHttpServer((_, answer) => answer.end(JSON.stringify(list)));
  await once(coordinator.listen(join(home, "coordinator.sock")), "listening");
  const currentRun = { ...{ pid: process.pid, schema, database: null }, resolvers: [] } as never;
  const context = { home, schema, currentRun, databaseUrl: null, settingsFile: null };
  const found = async () => await searchFindings({ engine: "fts5", url: null, ca: null }, context);

  const behind = await found();
  list.acknowledged = [];
  const level = await found();
  coordinator.close();
  coordinator.closeAllConnections();

  expect(behind).toEqual([{ state: "fix", subject: "search", words: "Its disk is full. Free it." }]);
  expect([level.map(({ state }) => state), await found()]).toEqual([["ok"], []]);
});

it("checks the pages' own port too, and names the setting of a taken port", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port: pagesPort } = taken.address() as { port: number };
  const config = readCoordinatorConfig({ listen: { port: await freePort(), pagesPort } });

  const findings = await listenFindings(config, false);
  taken.close();

  expect(findings.map(({ state }) => state)).toEqual(["ok", "fix"]);
  expect(findings[1]!.words).toMatch(/end it, or choose another port \(listen\.pagesPort\)/);
});

it("judges versions, room, clock and the server's settings", () => {
  const day = (text: string) => new Date(`${text}T00:00:00Z`);
  const gibibyte = 2 ** 30;
  const server = {
    ...{ encoding: "UTF8", fsync: "on", fullPageWrites: "on", maxConnections: 100 },
    ...{ sharedBuffersBytes: gibibyte, maxWalBytes: 8 * gibibyte },
  };
  const states = (...all: readonly { readonly state: string }[]) => all.map(({ state }) => state);

  expect(
    states(nodeFinding("v18.1.0"), nodeFinding("v20.20.0"), nodeFinding("v22.1.0"), nodeFinding("v24.0.0")),
  ).toEqual(["fix", "note", "ok", "ok"]);
  expect(
    states(
      versionFinding(14, false),
      versionFinding(15, false),
      versionFinding(18, true),
      versionFinding(19, false),
    ),
  ).toEqual(["fix", "ok", "ok", "note"]);
  expect(
    states(diskFinding("/x", gibibyte), diskFinding("/x", 5 * gibibyte), diskFinding("/x", 50 * gibibyte)),
  ).toEqual(["fix", "note", "ok"]);
  expect(states(clockFinding("it", 1900), clockFinding("it", -60_000))).toEqual(["ok", "fix"]);
  expect(
    ["2030-01-01", "2030-01-20", "2030-06-01"].map(
      (end) => expiryFinding("c", day(end), day("2030-01-10")).state,
    ),
  ).toEqual(["fix", "note", "ok"]);
  expect(serverFindings(server, false)).toEqual([]);
  expect(
    states(...serverFindings({ ...server, fsync: "off", maxConnections: 20, encoding: "SQL_ASCII" }, false)),
  ).toEqual(["fix", "fix", "fix"]);
  expect(
    states(...serverFindings({ ...server, sharedBuffersBytes: 2 ** 20, maxWalBytes: 2 ** 20 }, false)),
  ).toEqual(["note", "note"]);
});
