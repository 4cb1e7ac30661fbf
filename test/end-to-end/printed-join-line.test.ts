/**
 * The line that an invitation prints, pasted into a shell in an empty folder, and the line that it prints in turn, with the
 * built coordinator, download and crawler as processes. The crawler reaches the emulated Internet by the settings that a
 * partner behind a proxy puts into its folder.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { admitUrls } from "#coordinator/crawl/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/crawl/frontier/frontier-store";
import { ensureRootSubnets } from "#coordinator/place/subnets/subnet-store";
import { readInvitationProgress } from "#coordinator/tell/fleet/invitation-step-reads";
import type { Database } from "#db/server-database";
import { generateWorld } from "#ops/world/generate-world";
import { startWorld } from "#ops/world/main";
import { builtProgram, nearcrawl } from "../support/built-command.ts";
import { testDatabase } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { plainSites } from "./owned-hosts.ts";

const cleanups: (() => unknown)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Started {
  readonly text: () => string;
  readonly ended: Promise<number | null>;
}

/** In its own process group, which is ended as a whole. */
function start(command: string, args: readonly string[], options: Parameters<typeof spawn>[2]): Started {
  const child: ChildProcess = spawn(command, [...args], { ...options, detached: true });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece) => (text += String(piece)));
  const ended = once(child, "exit").then(([code]) => code as number | null);
  cleanups.push(async () => {
    // The shell ends before what it runs.
    signalGroup(child, "SIGTERM");
    await until(() => !signalGroup(child, 0), 30_000);
  });
  return { text: () => text, ended };
}

/** False when no process of it is left. */
function signalGroup({ pid }: ChildProcess, signal: "SIGTERM" | 0): boolean {
  try {
    return process.kill(-pid!, signal);
  } catch {
    return false;
  }
}

function shell(line: string, cwd: string, env: Record<string, string>, input = ""): Started {
  const file = join(temporaryFolder("nearcrawl-typed-"), "input");
  writeFileSync(file, input);
  return start("sh", ["-c", `${line} < '${file}'`], { cwd, env: { ...process.env, ...env } });
}

const scope = { pagesPerHost: 5, maxDepth: 2, admitNewHosts: false } as const;

async function startCoordinatorProcess(database: Database, home: string, dnsAddress: string) {
  const config = join(home, "coordinator.json");
  const listen = { host: "127.0.0.1", port: 0 };
  const delegation = { settleSeconds: 0, expectedCrawlers: 1 };
  writeFileSync(config, JSON.stringify({ listen, resolvers: [dnsAddress], delegation, scope }));
  const main = await builtProgram("ops/cli/main");
  const env = { ...process.env, DATABASE_URL: database.url, NEARCRAWL_SCHEMA: database.schema };
  const coordinator = start(process.execPath, [main, "coordinator", "--config", config, "--home", home], {
    env,
  });
  await until(() => /^coordinator at (\S+),/m.test(coordinator.text()), 60_000);
}

it("the printed line, pasted in an empty folder of a new system, leads to a page in the index", async () => {
  const generated = generateWorld({ seed: 5, sites: 20, crawlers: 1 });
  const internet = await startWorld(generated);
  cleanups.push(() => internet.close());
  const database = await testDatabase();
  cleanups.push(() => database.close());
  await ensureRootSubnets(database.pool);
  const home = temporaryFolder("nearcrawl-operator-");
  await startCoordinatorProcess(database, home, internet.dnsAddress);
  const urls = plainSites(generated).map(({ host }) => `http://${host}/`);
  const ports = {
    frontier: createFrontierStore(database.pool),
    rejected: createRejectedUrlStore(database.pool),
  };
  await admitUrls(urls, ports, { scope: { ...scope, admitNewHosts: true }, now: new Date() });
  const invited = await nearcrawl(["fleet", "invite", "--name", "athens", "--home", home], { database });
  const [token, line] = [/^nc1\..*$/m.exec(invited.out)![0], /^curl .*$/m.exec(invited.out)![0]];
  const folder = realpathSync(temporaryFolder("nearcrawl-partner-"));
  const crawlerHome = join(folder, "crawler");
  mkdirSync(crawlerHome);
  const settings = [
    `publicAddress = "${generated.crawlers[0]!.address}"`,
    `proxy = "${internet.proxyUrlOf(0)}"`,
    `resolvers = ["${internet.dnsAddress}"]`,
  ];
  writeFileSync(join(crawlerHome, "settings.toml"), `${settings.join("\n")}\n`);
  const empty = join(folder, "empty");
  mkdirSync(empty);

  const steps = async () =>
    (await readInvitationProgress(database.pool, 1, new Date()))!.steps.map(({ isDone }) => isDone);
  const before = await steps();
  const pastedMs = performance.now();
  const joined = shell(line, empty, { NEARCRAWL_CRAWLER_HOME: crawlerHome }, `${token}\n`);
  const joinCode = await joined.ended;
  const afterJoining = await steps();
  const startLine = /^Start it: +(.*)$/m.exec(joined.text())?.[1] ?? `exit ${joinCode}: ${joined.text()}`;
  shell(startLine, empty, {});
  await until(async () => (await database.pool.query("select from page limit 1")).rowCount === 1, 90_000);
  const seconds = (performance.now() - pastedMs) / 1000;
  await until(async () => (await steps()).every((isDone) => isDone), 20_000);

  process.stdout.write(
    `the join line was pasted ${seconds.toFixed(1)} s before the first page was in the index\n`,
  );
  const { rows } = await database.pool.query("select release_version from crawler where name = 'athens'");
  expect(joinCode).toBe(0);
  expect([before, afterJoining]).toEqual([
    [false, false, false, false, false],
    [true, true, true, false, false],
  ]);
  expect(readdirSync(empty)).toEqual(["nearcrawl-crawler.mjs"]);
  expect(rows).toEqual([{ release_version: JSON.parse(readFileSync("package.json", "utf8")).version }]);
  expect(statSync(join(home, "automatic-release-key.pem")).mode & 0o777).toBe(0o600);
});
