/**
 * How soon results flow again after a coordinator is killed: from SIGKILL to the coordinator that listens again, to the first
 * crawler that is back, to the last, and to the first result that is stored. The coordinator is the built command, started
 * again as `nearcrawl up` does (a supervisor that starts it at once, later each time in a row); crawlers are real, in this
 * process; the Internet is emulated.
 * Run: npm run bench -- coordinator-return [--kills 6] [--crawlers 12] [--write]
 *   --write: the figures go to test/bench/results/coordinator-return.md
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { admitUrls } from "#coordinator/frontier/admit-urls";
import { createFrontierStore, createRejectedUrlStore } from "#coordinator/frontier/frontier-store";
import { quietLog } from "#crawler/core/log";
import type { RunningCrawler } from "#crawler/crawler-process";
import { startCrawler } from "#crawler/main";
import { crawlerConfig } from "#crawler/settings/config";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { newCrawlerKey } from "#ops/cli/crawler-key";
import { SupervisedProcess } from "#ops/cli/up/child-process";
import { generateWorld } from "#ops/world/generate-world";
import { startWorld } from "#ops/world/main";
import { resultFile } from "./result-file.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "6" },
    crawlers: { type: "string", default: "12" },
    write: { type: "boolean", default: false },
  },
});
// The coordinator is the built command, and needs nothing that this process was started with.
process.execArgv = [];
const kills = Number(values.kills);
const crawlerCount = Number(values.crawlers);
const root = join(import.meta.dirname, "../..");
const world = generateWorld({ seed: 29, sites: 1200, crawlers: crawlerCount });
const scope = { pagesPerHost: 20, maxDepth: 5, admitNewHosts: false };

execFileSync(process.execPath, [join(root, "ops/build.mjs"), "--unchecked"], { stdio: "ignore" });
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({ databaseUrl: null, home: folder, schema: "bench" });
await migrate(database);
const internet = await startWorld(world);
const settingsFile = join(folder, "settings.json");
const writeSettings = (port: number) =>
  writeFileSync(
    settingsFile,
    JSON.stringify({
      listen: { host: "127.0.0.1", port },
      resolvers: [internet.dnsAddress],
      delegation: { expectedCrawlers: crawlerCount, settleSeconds: 5 },
      scope,
      lease: { addressRestSeconds: 0 },
    }),
  );
writeSettings(0);

let listeningMs = 0;
let webUrl = "";
const home = join(folder, "coordinator");
mkdirSync(home, { recursive: true });
const coordinator = new SupervisedProcess({
  name: "coordinator",
  entry: join(root, "dist/ops/cli/main.js"),
  args: ["coordinator", "--config", settingsFile, "--home", home, "--schema", "bench"],
  secrets: { DATABASE_URL: database.url },
  logFile: join(folder, "coordinator.log"),
  onMessage: (message) => {
    listeningMs = performance.now();
    webUrl = String((message as { readonly webUrl?: unknown }).webUrl);
  },
});
coordinator.start();
await until(() => listeningMs > 0);
writeSettings(Number(new URL(webUrl).port));

const backMs = new Map<number, number>();
const crawlers: RunningCrawler[] = [];
for (const [index, { name, address }] of world.crawlers.entries()) {
  const { key, keyHash } = newCrawlerKey();
  await createCrawlerStore(database.pool).register({ name, keyHash });
  const log = {
    ...quietLog,
    info: (_: object, words: string) => {
      if (words === "the coordinator welcomed this crawler") backMs.set(index, performance.now());
    },
  };
  const settings = {
    coordinatorUrl: `${webUrl.replace("http", "ws")}/crawler`,
    ...{ key, name, home: join(folder, name), publicAddress: address, responseTimeFactor: 0 },
    ...{ proxy: internet.proxyUrlOf(index), resolvers: [internet.dnsAddress], politenessFloorMs: 20_000 },
    probeMethods: ["head", "connect"] as const,
  };
  crawlers.push(
    await startCrawler(crawlerConfig({ ...settings, probeMethods: ["head", "connect"] }), { log }),
  );
}
const frontier = createFrontierStore(database.pool);
await admitUrls(
  world.sites.map(({ host }) => `http://${host}/`),
  { frontier, rejected: createRejectedUrlStore(database.pool) },
  { scope: { ...scope, admitNewHosts: true }, now: new Date() },
);

interface Return {
  readonly listens: number;
  readonly firstBack: number;
  readonly lastBack: number;
  readonly firstResult: number;
}

const returns: Return[] = [];
for (let number = 1; number <= kills; number += 1) {
  // Long enough alive to count as healthy, as one that is killed once a month.
  const livedUntilMs = listeningMs + 31_000;
  await until(() => performance.now() > livedUntilMs && backMs.size === crawlerCount);
  const before = await newest();
  backMs.clear();
  const killedMs = performance.now();
  process.kill(coordinator.pid!, "SIGKILL");
  let resultMs = 0;
  await until(async () => {
    if (resultMs === 0 && (await newest()) > before && backMs.size > 0) resultMs = performance.now();
    return resultMs > 0 && backMs.size === crawlerCount;
  });
  const back = [...backMs.values()];
  const seconds = (atMs: number) => (atMs - killedMs) / 1000;
  const one = {
    listens: seconds(listeningMs),
    firstBack: seconds(Math.min(...back)),
    lastBack: seconds(Math.max(...back)),
    firstResult: seconds(resultMs),
  };
  returns.push(one);
  process.stderr.write(`${number}: ${JSON.stringify(one)}\n`);
}

const table = [
  "| from SIGKILL to | least | median | most |",
  "|---|--:|--:|--:|",
  row("the coordinator listens again", "listens"),
  row("the first crawler is back", "firstBack"),
  row("the first result is stored", "firstResult"),
  row("the last crawler is back", "lastBack"),
].join("\n");
process.stdout.write(`${table}\n`);
if (values.write) {
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], {
    cwd: root,
    encoding: "utf8",
  }).trim();
  const place = `commit ${commit}, ${cpus()[0]?.model.trim()}, ${cpus().length} cores, load ${loadavg()[0]!.toFixed(0)}`;
  writeFileSync(
    resultFile("coordinator-return.md"),
    `# How soon results flow again after a coordinator is killed

${new Date().toISOString().slice(0, 10)}, ${place}. ${kills} kills of one coordinator, which \`up\`'s
supervisor starts again; ${crawlerCount} crawlers, one Postgres, and the emulated Internet on the same machine.
\`npm run bench -- coordinator-return --write\`

${table}
`,
  );
}
await Promise.all(crawlers.map((one) => one.stop()));
await coordinator.stop();
await internet.close();
await database.close();
await stopEmbeddedPostgres(folder);
rmSync(folder, { recursive: true, force: true });

function row(words: string, name: keyof Return): string {
  const sorted = returns.map((one) => one[name]).sort((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(1);
  return `| ${words} | ${at(0)} s | ${at(0.5)} s | ${at(1)} s |`;
}

async function newest(): Promise<number> {
  const { rows } = await database.pool.query<{ fetches: number }>(
    "select count(*)::int as fetches from page_fetch",
  );
  return rows[0]!.fetches;
}

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 180_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within 180 s: ${holds.toString()}`);
    await delay(25);
  }
}
