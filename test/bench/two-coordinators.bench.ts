/**
 * Two coordinators on one database, one of them killed again and again in the middle of a crawl: how soon its crawlers are
 * with the other, and what must never be: a round that runs twice, a subnet that is given away, a result that is lost or
 * fetched twice. At the end one is killed with all of its crawlers, and what was due for them goes to the others.
 * Coordinators are the built command as processes; the crawlers are real, in this process; the Internet is emulated.
 * Run: npm run bench -- two-coordinators [--kills 30] [--crawlers 24] [--write]
 *   --write: the figures go to test/bench/results/two-coordinators.md
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { generateWorld } from "#ops/world/generate-world";
import { startWorld } from "#ops/world/main";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { applyImport } from "#rir-import/apply";
import { otherSide, SharedFleet, type Side } from "../end-to-end/shared-fleet.ts";
import { resultFile } from "./result-file.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "30" },
    crawlers: { type: "string", default: "24" },
    write: { type: "boolean", default: false },
  },
});
const kills = Number(values.kills);
const crawlerCount = Number(values.crawlers);
const isWhole = kills >= 30 && crawlerCount >= 24;
const sitesPerKill = 6;
/** Now the one that leads, now the other one. */
const victims: readonly Side[] = [0, 1, 1, 0];
const root = join(import.meta.dirname, "../..");

const world = generateWorld({ seed: 23, sites: sitesPerKill * (kills + 3), crawlers: crawlerCount });
const scope = { pagesPerHost: 4, maxDepth: 3, admitNewHosts: false };
const hosts = world.sites.map(({ host }) => host);
const departureSeconds = 60;

execFileSync(process.execPath, [join(root, "ops/build.mjs"), "--unchecked"], { stdio: "ignore" });
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({ databaseUrl: null, home: folder, schema: "bench" });
await migrate(database);
await applyImport(database, await writeRegistryFiles(world, join(folder, "registry")), {});
const internet = await startWorld(world);
const fleet = new SharedFleet({
  ...{ database, world, internet, folder, main: join(root, "dist/ops/cli/main.js") },
  settings: {
    delegation: { expectedCrawlers: crawlerCount, settleSeconds: 20 },
    ...{ scope, departureSeconds, heartbeatSeconds: 5 },
  },
  crawlerSettings: { politenessFloorMs: 500, limits: { priority: 0 }, status: { port: 0 } },
});

interface Kill {
  readonly side: Side;
  readonly led: boolean;
  /** Of each crawler that was connected to it. */
  readonly changeOverMs: readonly number[];
  /** Until the other one led; null: it did already. */
  readonly leadMs: number | null;
}

/** Each says so before it waits; a wait that does not end tells for what. */
async function until(what: string, withinMs: number, holds: () => Promise<boolean> | boolean): Promise<void> {
  const startMs = performance.now();
  while (!(await holds())) {
    if (performance.now() - startMs > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await delay(25);
  }
}

const homeOf = (index: number): Side => (index % 2 === 0 ? 0 : 1);
const all = [...world.crawlers.keys()];
const fetched = async () => await fleet.count("from page_fetch");

/** Crawlers are with the one that they are at home at, again. */
async function goHome(): Promise<void> {
  const strangers = all.filter((index) => fleet.sessions.get(index)?.side !== homeOf(index));
  await Promise.all(
    strangers.map(async (index) => {
      await fleet.stopCrawler(index);
      await fleet.startCrawler(index, homeOf(index));
    }),
  );
  await until("all crawlers are at home", 60_000, () =>
    all.every((index) => fleet.sessions.get(index)?.side === homeOf(index)),
  );
}

async function killOnce(at: number): Promise<Kill> {
  const side = victims[at % victims.length]!;
  const term = await fleet.term();
  const before = await fetched();
  await fleet.admit(hosts.slice(at * sitesPerKill, (at + 1) * sitesPerKill), {
    ...scope,
    admitNewHosts: true,
  });
  await until("something is fetched", 60_000, async () => (await fetched()) > before);
  const lost = fleet.connectedTo(side);
  const killedMs = await fleet.kill(side);
  const led = await leads(term, killedMs);
  await until(
    "all crawlers are with the other",
    60_000,
    () => fleet.connectedTo(otherSide(side)).length === all.length,
  );
  const changeOverMs = lost.map((index) => fleet.sessions.get(index)!.atMs - killedMs);
  const leadMs = led ?? null;
  await fleet.startCoordinator(side);
  await goHome();
  return { side, led: leadMs !== null, changeOverMs, leadMs };
}

/** Whether the lead went to the other, and how soon: within 5 s it has, or the other one had it. */
async function leads(term: number, sinceMs: number): Promise<number | null> {
  while (performance.now() - sinceMs < 6000) {
    if ((await fleet.term()) > term) return performance.now() - sinceMs;
    await delay(25);
  }
  return null;
}

/** The one that leads is killed with its crawlers: what was due for those is fetched by the others. */
async function lastKill(): Promise<string> {
  const side: Side = 0;
  const gone = all.filter((index) => homeOf(index) === side);
  await fleet.admit(hosts.slice(kills * sitesPerKill), { ...scope, admitNewHosts: true });
  await until("all new subnets are delegated", 60_000, async () => {
    const waiting = await fleet.count(
      "from frontier_host h where subnet_id is null or not exists (select from delegation d where d.subnet_id = h.subnet_id)",
    );
    return waiting === 0;
  });
  const names = gone.map((index) => `'${world.crawlers[index]!.name}'`).join();
  const owned = `from delegation join crawler using (crawler_id) where name in (${names})`;
  const subnets = await fleet.count(owned);
  const due = await fleet.count(
    `from frontier_url u join frontier_host h using (host_hash) join delegation d using (subnet_id)
     join crawler c on c.crawler_id = d.crawler_id where c.name in (${names}) and u.state = 'due' and u.failures = 0
       and not exists (select from page_fetch f where f.host_hash = u.host_hash and f.url_hash = u.url_hash)`,
  );
  const killedMs = await fleet.kill(side);
  await Promise.all(gone.map(async (index) => await fleet.stopCrawler(index)));
  await until(
    "nothing is left with those that are gone",
    180_000,
    async () => (await fleet.count(owned)) === 0,
  );
  const movedMs = performance.now() - killedMs;
  await until("everything is fetched", 180_000, async () => (await fleet.figures()).pending === 0);
  const doneMs = performance.now() - killedMs;
  const seconds = (ms: number) => (ms / 1000).toFixed(0);
  return `one coordinator killed with its ${gone.length} crawlers, which had ${subnets} subnets and ${due} URLs not fetched yet: all with others after ${seconds(movedMs)} s (departureSeconds is ${departureSeconds}), all fetched after ${seconds(doneMs)} s`;
}

function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => ((sorted[Math.floor(share * (sorted.length - 1))] ?? 0) / 1000).toFixed(2);
  return `median ${at(0.5)} s, p95 ${at(0.95)} s, most ${at(1)} s of ${sorted.length}`;
}

try {
  await fleet.startCoordinator(0);
  await fleet.startCoordinator(1);
  for (const index of all) await fleet.startCrawler(index, homeOf(index));
  await goHome();
  console.log(`${crawlerCount} crawlers at two coordinators; ${kills} kills`);
  const done: Kill[] = [];
  for (let at = 0; at < kills; at += 1) {
    const kill = await killOnce(at);
    done.push(kill);
    const figures = await fleet.figures();
    console.log(
      `kill ${at + 1}: ${spread(kill.changeOverMs)}${kill.leadMs === null ? "" : `; lead after ${(kill.leadMs / 1000).toFixed(2)} s`}; ${JSON.stringify(figures)}`,
    );
  }
  await until("everything is fetched", 180_000, async () => (await fleet.figures()).pending === 0);
  const figures = await fleet.figures();
  const missed = await fleet.count(
    "from frontier_url u where not exists (select from page_fetch f where f.host_hash = u.host_hash and f.url_hash = u.url_hash)",
  );
  const last = await lastKill();
  const end = await fleet.figures();
  const lines = [
    `| kills | of the one that led | change-over of a crawler | lead taken | subnets given away | decided subnets | rounds twice | URLs fetched | fetched twice | never fetched |`,
    `|---|---|---|---|---|---|---|---|---|---|`,
    `| ${kills} | ${done.filter(({ led }) => led).length} | ${spread(done.flatMap(({ changeOverMs }) => changeOverMs))} | ${spread(done.flatMap(({ leadMs }) => leadMs ?? []))} | ${figures.movedAway} | ${figures.subnets} | ${figures.roundsTwice} | ${figures.urls} | ${figures.fetchedTwice} | ${missed} |`,
    "",
    `Then ${last}; ${end.fetchedTwice} fetched twice, ${end.roundsTwice} rounds twice.`,
  ];
  console.log(lines.join("\n"));
  if (values.write) write(lines);
} finally {
  await fleet.close();
  await internet.close();
  await database.close();
  await stopEmbeddedPostgres(folder);
  rmSync(folder, { recursive: true, force: true });
}
process.exit();

function write(lines: readonly string[]): void {
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], {
    cwd: root,
    encoding: "utf8",
  }).trim();
  const head = [
    "# Two coordinators, one of them killed",
    "",
    `${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${cpus().length} cores shared with other work, Node ${process.version}, embedded Postgres.`,
    `\`npm run bench -- two-coordinators --kills ${kills} --crawlers ${crawlerCount} --write\`: ${crawlerCount} real crawlers in one process, half at each of two`,
    "coordinators (processes of the built command), the emulated Internet; new sites are admitted before each kill, and the",
    "coordinators are killed (SIGKILL) by turns while they are delegated and fetched. Times are wall time from the kill to the",
    "welcome by the other coordinator. *Rounds twice*: subnets with more than one decided round as new. *Given away*: moves",
    "because a crawler left.",
    "",
  ];
  writeFileSync(resultFile("two-coordinators.md", isWhole), `${[...head, ...lines].join("\n")}\n`);
}
