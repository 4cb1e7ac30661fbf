/**
 * The first evening of ops/runbook/deploying.md: its blocks marked `sh`, line by line and in order, with the packed and
 * globally installed command, Debian's Postgres, TLS, and a crawler that joins by the printed line under another user. Runs
 * in npm run test:long; test/ops/named-commands.test.ts checks the commands of all pages in every run.
 * NEARCRAWL_TRANSCRIPT names a file for the commands and their output.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { startWorld } from "#ops/world/main";
import { debianBinaries, nobody, startDebianPostgres } from "../support/debian-postgres.ts";
import { freePort } from "../support/free-port.ts";
import { isLong } from "../support/long.ts";
import { startMailDns } from "../support/mail-dns.ts";
import { packedProgram } from "../support/packed-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { plainSites } from "./owned-hosts.ts";

const guide = readFileSync(resolve(import.meta.dirname, "../../ops/runbook/deploying.md"), "utf8");
const typed = [...guide.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block]) =>
  block!.trimEnd().split("\n"),
);

const cleanups: (() => unknown)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Run {
  readonly text: () => string;
  readonly ended: Promise<number | null>;
  readonly child: ChildProcess;
}

function start(command: string, args: readonly string[], options: Parameters<typeof spawn>[2]): Run {
  const child = spawn(command, [...args], { ...options, detached: true });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece) => (text += String(piece)));
  const ended = once(child, "close").then(([code]) => code as number | null);
  cleanups.push(async () => {
    const signal = (name: "SIGTERM" | 0) => {
      try {
        return process.kill(-child.pid!, name);
      } catch {
        return false;
      }
    };
    signal("SIGTERM");
    await until(() => !signal(0), 40_000);
  });
  return { text: () => text, ended, child };
}

it.runIf(isLong)(
  "the guide, line by line, ends with a page fetched by a crawler that joined, was drained, resumed and removed",
  {
    timeout: 480_000,
  },
  async (context) => {
    const binaries = debianBinaries();
    const packed = binaries === null ? "there is no Postgres of Debian" : await packedProgram();
    if (binaries === null || typeof packed === "string") {
      process.stdout.write(`the evening was left out: ${String(packed)}\n`);
      context.skip();
      return;
    }
    const generated = generateWorld({ seed: 5, sites: 20, crawlers: 1 });
    const internet = await startWorld(generated);
    cleanups.push(() => internet.close());
    const dns = await startMailDns(internet.dnsAddress);
    cleanups.push(() => dns.close());
    const postgres = await startDebianPostgres(binaries);
    cleanups.push(() => postgres.close());
    const folder = temporaryFolder("nearcrawl-evening-");
    chmodSync(folder, 0o755);
    const home = join(folder, "home");
    const port = await freePort();
    const tls = { certificate: join(folder, "certificate.pem"), key: join(folder, "key.pem") };
    const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", tls.key];
    execFileSync("openssl", ["req", "-x509", "-days", "30", ...names, ...key, "-out", tls.certificate], {
      stdio: "ignore",
    });
    const [site] = plainSites(generated);
    const { PGHOST, PGPORT } = postgres.env;
    /** This machine's names in place of the guide's. */
    const here = (line: string) =>
      line
        .replace(
          "https://search.example.org",
          `https://localhost:${port} --listen 127.0.0.1:${port} --resolver ${dns.address}`,
        )
        .replace("noc@example.org", "noc@mail.test-domain.org")
        .replace("/etc/nearcrawl/certificate.pem", tls.certificate)
        .replace("/etc/nearcrawl/key.pem", tls.key)
        .replace(
          "postgres://nearcrawl@/nearcrawl",
          `'postgres://nearcrawl@/nearcrawl?host=${PGHOST}&port=${PGPORT}'`,
        )
        .replace("https://www.example.net/", `http://${site!.host}/`);
    const path = [join(packed.nearcrawl, ".."), binaries, process.env.PATH].join(":");
    const env = {
      ...process.env,
      PATH: path,
      NEARCRAWL_HOME: home,
      NODE_EXTRA_CA_CERTS: tls.certificate,
      JITI_FS_CACHE: "false",
    };
    const beganMs = performance.now();
    const transcript: string[] = [];
    const tell = (line: string, said: string) => {
      const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
      transcript.push(`[${seconds} s] $ ${line}`, ...said.trimEnd().split("\n"), "");
    };
    /** Takes one of the guide's lines from the list. */
    const type = async (beginning: string, more: Record<string, string> = {}) => {
      const line = typed.shift();
      expect(line).toMatch(new RegExp(`^${beginning}`));
      const run = start("sh", ["-c", here(line!)], { env: { ...env, ...more }, cwd: folder });
      const code = await run.ended;
      tell(line!, run.text());
      if (code !== 0) throw new Error(`${line}: exit code ${code}\n${run.text()}`);
      return run.text();
    };

    const asAdministrator = { ...postgres.env, PGUSER: "postgres" };
    await type("createuser", asAdministrator);
    await type("createdb", asAdministrator);
    await type("nearcrawl init");
    expect(await type("nearcrawl doctor")).not.toMatch(/^fix/m);
    const coordinator = start("nearcrawl", ["coordinator"], { env });
    await until(() => coordinator.text().includes("no registry is imported"), 60_000);
    tell("nearcrawl coordinator", coordinator.text().replace(/^\{.*\n/gm, ""));
    expect(await type("nearcrawl doctor")).toMatch(/^ok +address .* leads to a coordinator/m);
    expect(await type("nearcrawl sign-in")).toContain(`https://localhost:${port}/sign-in/`);
    expect(await type("nearcrawl urls add")).toContain("1 new");

    const invited = await type("nearcrawl fleet invite");
    const [token, line] = [/^nc1\..*$/m.exec(invited)![0], /^curl .*$/m.exec(invited)![0]];
    const partner = join(folder, "partner");
    const crawlerHome = join(partner, ".nearcrawl-crawler");
    for (const path of [partner, crawlerHome]) mkdirSync(path);
    const behindProxy = [
      `publicAddress = "${generated.crawlers[0]!.address}"`,
      `proxy = "${internet.proxyUrlOf(0)}"`,
      `resolvers = ["${internet.dnsAddress}"]`,
    ];
    writeFileSync(join(crawlerHome, "settings.toml"), `${behindProxy.join("\n")}\n`);
    writeFileSync(join(partner, "token"), `${token}\n`);
    if (nobody.uid !== undefined)
      for (const path of [partner, crawlerHome, join(crawlerHome, "settings.toml"), join(partner, "token")])
        chownSync(path, nobody.uid, nobody.gid);
    const guest = { cwd: partner, env: { PATH: process.env.PATH, HOME: partner }, ...nobody };
    const pastedMs = performance.now();
    const joined = start("sh", ["-c", `${line} < token`], guest);
    expect([await joined.ended, joined.text()]).toEqual([0, expect.any(String)]);
    tell(line, joined.text());
    const startLine = /^Start it: +(.*)$/m.exec(joined.text())![1]!;
    const crawler = start("sh", ["-c", startLine], guest);
    const query = async (sql: string) =>
      execFileSync(join(binaries, "psql"), ["-AtqX", "-U", "nearcrawl", "-c", sql, "nearcrawl"], {
        env: { ...process.env, ...postgres.env },
        encoding: "utf8",
      }).trim();
    await until(async () => Number(await query("select count(*) from nearcrawl.page")) > 0, 90_000);
    const firstPageSeconds = (performance.now() - pastedMs) / 1000;
    tell(
      startLine,
      `(the first page was fetched ${firstPageSeconds.toFixed(1)} s after the line was pasted)\n${crawler.text().slice(0, 2000)}`,
    );

    expect(await type("nearcrawl fleet list")).toMatch(/athens +online/);
    expect(await type("nearcrawl urls status")).toMatch(/fetched \(200\)/);
    expect(await type("nearcrawl page")).toContain(site!.host);
    const stateOf = async () =>
      await query(
        "select draining_since is not null, revoked_at is not null from nearcrawl.crawler where name = 'athens'",
      );
    await type("nearcrawl fleet drain");
    const drained = await stateOf();
    await type("nearcrawl fleet resume");
    await until(async () => (await query("select count(*) from nearcrawl.delegation")) !== "0", 60_000);
    const resumed = await stateOf();
    await type("nearcrawl fleet revoke");
    const removed = await stateOf();

    /** Without what only this machine or this run has. */
    const recordingOf = (text: string) =>
      text
        .replaceAll(folder, "/srv/evening")
        .replaceAll(encodeURIComponent(PGHOST), "%2Fvar%2Frun%2Fpostgresql")
        .replaceAll(PGPORT, "5432")
        .replaceAll(new RegExp(`(localhost|127\\.0\\.0\\.1):${port}`, "g"), "$1:7411")
        .replace(/by \S+ on \S+, 20/g, "by anna on search, 20")
        .replace(/nc1\.\S+/g, "nc1.… (the token)")
        .replace(/ncl_\S+/g, "ncl_…");
    process.stdout.write(
      `the evening: the first page ${firstPageSeconds.toFixed(1)} s after the join line was pasted, all of it in ` +
        `${((performance.now() - beganMs) / 1000).toFixed(0)} s\n`,
    );
    const file = process.env.NEARCRAWL_TRANSCRIPT;
    if (file !== undefined) writeFileSync(file, recordingOf(transcript.join("\n")));
    expect([drained, resumed, removed]).toEqual(["t|f", "f|f", "f|t"]);
    expect(firstPageSeconds).toBeLessThan(90);
    expect(typed).toEqual([]);
  },
);
