/**
 * The explorer over ten million subnets with two million delegations: how long its map takes to make, what it takes
 * in memory, how long its longest turn is, and then tiles at every zoom, pages of lists and of the tree.
 * Beside it the plain way in the same run: every cell of the first tile by a look-up of its middle, and a list by a
 * test of every subnet. CPU time, as the machine is shared. Run: npm run bench -- explorer
 */
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { DelegationTable } from "#coordinator/delegation/delegation-table";
import { type ExplorePorts, readQuestion, showExplore } from "#coordinator/explore/answer";
import { paletteOf, tilePicture } from "#coordinator/explore/colours";
import { countryFigures } from "#coordinator/explore/countries";
import { defaultExplorerSettings, type ExploredMap, Explorer } from "#coordinator/explore/explorer";
import { cellPositions, cellsPerTile, ipv4Space, rootTile, type Tile } from "#coordinator/explore/space";
import { systemClock } from "#coordinator/explore/start";
import { WorkTurns } from "#coordinator/explore/time-slices";
import { indexedPng } from "#coordinator/web/indexed-png";
import { asCrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { delegationsIn } from "./delegation/delegated-state.ts";
import { crawlersIn, registryWorld } from "./delegation/registry-world.ts";
import { resultFile } from "./result-file.ts";

const subnets = Number(process.argv[2] ?? 10_000_000);
const delegations = subnets / 5;
const loaded = subnets / 50;
const seed = 20260301;
const since = 1_772_000_000;
const crawlerCount = 60;

const lines: string[] = [];
const say = (line: string) => {
  lines.push(line);
  process.stdout.write(`${line}\n`);
};
const cpuMs = () => process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000;
const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(2)} GB`;
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

const world = registryWorld(subnets, seed);
const table = new DelegationTable();
for (const delegation of delegationsIn(world, crawlersIn(crawlerCount), delegations)) table.set(delegation);
const random = seededRandom(seed);
/** Turns are measured in CPU time, as the machine is shared: others' turns would count as ours. */
let turnStarted = 0;
let longestTurnMs = 0;
const clock = {
  ...systemClock,
  steadyMs: cpuMs,
  yieldTurn: async () => {
    longestTurnMs = Math.max(longestTurnMs, cpuMs() - turnStarted);
    await systemClock.yieldTurn();
    turnStarted = cpuMs();
  },
};
const startTurns = () => {
  longestTurnMs = 0;
  turnStarted = cpuMs();
};
const longestTurn = () => longestTurnMs.toFixed(1);
let notify: (changed: SubnetId | null) => void = () => {};
const crawlers = Array.from({ length: crawlerCount }, (_, index) => ({
  crawlerId: asCrawlerId(index + 1),
  name: `crawler-${index + 1}`,
}));
const state = {
  tree: world.tree,
  delegationTable: table,
  crawlers: crawlers as never,
  subnetsOf: (crawlerId: ReturnType<typeof asCrawlerId>) => table.subnetsOf(crawlerId),
  watch: (watcher: typeof notify) => {
    notify = watcher;
    return () => {};
  },
};
const explorer = new Explorer(
  {
    state,
    clock,
    onFault: (error) => {
      throw error;
    },
    reads: {
      eachMark: async (visit) => {
        let row = 0;
        for (const { subnetId } of table) {
          visit({ subnetId, since: since + (row % 900_000), anycast: false });
          // Rows come from the database in pieces.
          if (++row % 1000 === 0) await clock.yieldTurn();
        }
      },
      eachLoad: async (_recrawlDays, visit) => {
        for (let index = 0; index < loaded; index += 1) {
          const subnetId = table.subnetAt(Math.floor(random() * table.size));
          visit({ subnetId, pagesPerDay: 1 + 500 * random() ** 4, dueHosts: index % 3 });
          if (index % 1000 === 0) await clock.yieldTurn();
        }
      },
      finerSubnets: async () => [],
    },
  },
  { ...defaultExplorerSettings, readLoadsEveryMs: 1e9, recrawlDays: 30 },
);
const ports: ExplorePorts = {
  explorer,
  state,
  clock,
  reads: { holders: async () => [], holdersCalled: async () => [] },
};

async function measureBuild(): Promise<void> {
  startTurns();
  const [startMs, startCpu] = [performance.now(), cpuMs()];
  await explorer.settled();
  const [tookMs, tookCpu] = [performance.now() - startMs, cpuMs() - startCpu];
  const { tiles } = explorer.map as ExploredMap;
  say("## Reading and drawing everything once\n");
  say(
    `${(tookMs / 1000).toFixed(1)} s, ${(tookCpu / 1000).toFixed(1)} s of CPU time, in turns of ${longestTurn()} ms of CPU time at the most.`,
  );
  say(
    `Kept: ${tiles[4].count} tiles of IPv4; ${megabytes(explorer.bytes)} in all beside the tree (${megabytes(Object.values(world.tree.bytes).reduce((sum, bytes) => sum + bytes, 0))}) and the delegations (${megabytes(table.bytes)}).`,
  );
  const [plainCpu] = [cpuMs()];
  for (let cell = 0; cell < cellsPerTile; cell += 1) {
    const id = world.tree.mostSpecificNonUnaryId({ family: 4, value: cell * 65536 + 32768 });
    if (id !== null) table.rowOf(id);
  }
  const plain = cpuMs() - plainCpu;
  say(
    `The plain way, one look-up in the middle of each of the first tile's ${cellsPerTile} cells, takes ${plain.toFixed(0)} ms each time and sees ${cellsPerTile} of ${world.tree.size} subnets.\n`,
  );
}

/** Tiles anywhere, and the one over most subnets, with nothing remembered of them. */
async function measureTiles(of: ExploredMap): Promise<void> {
  say("## Tiles\n");
  say("| zoom | block | tiles made | kept | cells, PNG: CPU ms at the median | 95th percentile | most |");
  say("|---|---|---|---|---|---|---|");
  // The first ones make the pixels' tables and warm the code up.
  for (let warm = 0; warm < 8; warm += 1) await draw(of, { space: ipv4Space, zoom: 5, index: warm });
  for (let zoom = 0; zoom <= ipv4Space.deepestZoom; zoom += 1) {
    const times: number[] = [];
    let kept = 0;
    const count = Math.min(24, 4 ** zoom);
    for (let made = 0; made < count; made += 1) {
      const index = count === 4 ** zoom ? made : Math.floor(random() * 4 ** zoom * 0.87);
      const tile: Tile = { space: ipv4Space, zoom, index };
      if (of.tiles[4].get(tile) !== null) kept += 1;
      const start = cpuMs();
      await draw(of, tile);
      times.push(cpuMs() - start);
    }
    say(
      `| ${zoom} | /${2 * zoom} | ${times.length} | ${kept} | ${at(times, 0.5)} | ${at(times, 0.95)} | ${at(times, 1)} |`,
    );
  }
  say(`\nA cell of the first tile is ${cellPositions(rootTile(ipv4Space))} addresses.\n`);
}

async function draw(of: ExploredMap, tile: Tile): Promise<void> {
  const cells = await explorer.cells(of, tile, null);
  const pixels = tilePicture(tile, cells, { colouring: "crawler", nowSeconds: since + 900_000 });
  indexedPng({ width: 256, height: 256, pixels, palette: paletteOf("crawler") });
}

function at(times: readonly number[], share: number): string {
  const sorted = times.toSorted((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(1);
}

const pages: Readonly<Record<string, string>> = {
  "list, all, first page": "view=list",
  "list, all, in the middle": "view=list&after=120.0.0.0/8",
  "list, one crawler of 60": "view=list&crawler=crawler-7",
  "list, one crawler, in one country of 200": "view=list&crawler=crawler-7&country=CY",
  "list, RTT from 200 ms": "view=list&minRttMs=200",
  "list, delegated itself": "view=list&state=delegated",
  "list, waiting": "view=list&state=waiting",
  "list, load from 400 a day": "view=list&minLoad=400",
  "list, nobody's, of one country": "view=list&state=none&country=DE",
  "list, by load": "view=list&sort=load&minLoad=1",
  "list, largest of all": "view=list&sort=size",
  "tree, the root": "view=tree",
  "tree, a /8 by address": "view=tree&at=200.0.0.0/8",
  "tree, a /8 by load": "view=tree&at=200.0.0.0/8&sort=load",
  "occupied map, all of IPv4": "view=map",
  "occupied map, by RTT, first time and then again": "view=map&colour=rtt",
  "occupied map, by age, first time and then again": "view=map&colour=age",
  "occupied map, area by addresses": "view=map&measure=addresses",
  "occupied map, area by pages": "view=map&measure=pages",
  "occupied map, a /8 with a panel": "view=map&at=200.0.0.0/8&pick=200.1.2.3",
  "occupied map, a filter, first time and then again": "view=map&crawler=crawler-9",
  "whole map, with legend and blocks": "view=map&layout=whole",
  "whole map, a filter, first time and then again": "view=map&layout=whole&crawler=crawler-8",
};

async function measurePages(of: ExploredMap): Promise<void> {
  say("## Pages\n");
  say("| page | CPU ms at the median of 5 | most | longest turn, CPU ms |");
  say("|---|---|---|---|");
  for (const [name, query] of Object.entries(pages)) {
    const given = new URLSearchParams(query);
    const question = readQuestion((one) => given.get(one) ?? "");
    if (typeof question === "string") throw new Error(question);
    const times: number[] = [];
    startTurns();
    for (let round = 0; round < 5; round += 1) {
      turnStarted = cpuMs();
      const start = cpuMs();
      await showExplore(ports, of, question);
      longestTurnMs = Math.max(longestTurnMs, cpuMs() - turnStarted);
      times.push(cpuMs() - start);
    }
    say(`| ${name} | ${at(times, 0.5)} | ${at(times, 1)} | ${longestTurn()} |`);
  }
  const countries: number[] = [];
  startTurns();
  for (let round = 0; round < 3; round += 1) {
    turnStarted = cpuMs();
    const started = cpuMs();
    await countryFigures(of.world, new WorkTurns(clock));
    longestTurnMs = Math.max(longestTurnMs, cpuMs() - turnStarted);
    countries.push(cpuMs() - started);
  }
  say(`| map of countries, its figures | ${at(countries, 0.5)} | ${at(countries, 1)} | ${longestTurn()} |`);
  const start = cpuMs();
  let found = 0;
  for (let place = 0; place < of.world.rows.length; place += 1) {
    const row = of.world.rows[place] as number;
    if (row >= 0 && of.world.crawlerIdAt(row) === 7) found += 1;
  }
  say(
    `\nThe plain way, a test of every subnet: ${(cpuMs() - start).toFixed(0)} ms for crawler-7's ${found}.\n`,
  );
}

/** As in a crawl: subnets anywhere are decided anew, ten thousand at once. */
async function measureChanges(): Promise<void> {
  const changed = 10_000;
  for (let index = 0; index < changed; index += 1) {
    const row = Math.floor(random() * table.size);
    const subnetId = table.subnetAt(row);
    const delegation = table.get(subnetId);
    if (delegation === null) continue;
    table.set({ ...delegation, crawlerId: asCrawlerId(1 + Math.floor(random() * crawlerCount)) });
    notify(subnetId);
  }
  startTurns();
  const start = cpuMs();
  await explorer.settled();
  say("## Changes\n");
  say(
    `${changed} subnets delegated anew: ${((1000 * (cpuMs() - start)) / changed).toFixed(0)} µs of CPU time each until every tile shows it, in turns of ${longestTurn()} ms of CPU time at the most.`,
  );
}

say("# The explorer\n");
say(
  `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${cpus().length} cores of ${cpus()[0]?.model ?? "?"}, load average ${loadavg()[0]!.toFixed(1)} at the end. ${world.tree.size} subnets, ${table.size} delegations to ${crawlerCount} crawlers, ${loaded} subnets with a load; seed ${seed}.\n`,
);
await measureBuild();
const map = explorer.map as ExploredMap;
await measureTiles(map);
await measurePages(map);
await measureChanges();
say(
  `\nMost memory of the run, the generator's ranges included: ${gigabytes(1024 * process.resourceUsage().maxRSS)}.`,
);
writeFileSync(resultFile("explorer.md", subnets >= 10_000_000), `${lines.join("\n")}\n`);
