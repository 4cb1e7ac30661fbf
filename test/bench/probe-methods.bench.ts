/**
 * In what share of cases the crawler with the fastest probe is the one that downloads the fastest, for each probe method
 * (IPMicra section 4.2: 91 % by ping, 92.5 % by HEAD). Crawlers, four as in the paper, in network namespaces of their own, sites of the emulated
 * Internet's model on real sockets, and packets delayed by its round trips and by queues (test/support/small-internet). It
 * needs root on Linux; without, it says so and measures nothing. Results are kept in results/probe-methods.md.
 *
 *   npm run bench -- probe-methods [--sites 100] [--seeds 1,2,3] [--crawlers 4]
 */
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { parseArgs } from "node:util";
import { UsageError } from "#core/errors";
import { wilsonInterval } from "#core/format";
import { formatTable } from "#ops/cli/output";
import { generateWorld } from "#ops/world/generate-world";
import type { World } from "#ops/world/model";
import { type ProbeMethod, probeMethods } from "#protocol/messages";
import { smallInternetNeeds } from "../support/small-internet/small-internet.ts";
import { figure } from "./figure.ts";
import type { Errand } from "./probe-methods/measuring-crawler.ts";
import { benchNodeArgs } from "./runner/run-bench.ts";

/** Looked at together; all crawlers ask one site at once. */
const sitesAtOnce = 6;
/** Of a page; log-normal around what the crawl's benches use. */
const page = { medianBytes: 40_000, spread: 1, leastBytes: 1000, mostBytes: 500_000 };

/** What differs from packet to packet and from request to request: our judgement, from nothing to a bad evening. */
const conditions = [
  { name: "quiet", queueMs: 0, thinks: false, spread: 0 },
  { name: "usual", queueMs: 1, thinks: true, spread: 0.3 },
  { name: "busy", queueMs: 5, thinks: true, spread: 0.8 },
] as const;
type Condition = (typeof conditions)[number];

const { values } = parseArgs({
  options: {
    sites: { type: "string", default: "100" },
    seeds: { type: "string", default: "1,2,3" },
    crawlers: { type: "string", default: "4" },
  },
});
const crawlers = Number(values.crawlers);
const sitesPerWorld = Number(values.sites);
const seeds = values.seeds.split(",").map(Number);
for (const number of [crawlers, sitesPerWorld, ...seeds])
  if (!(Number.isInteger(number) && number > 0))
    throw new UsageError("--crawlers, --sites and --seeds take whole numbers from 1 on");

const whats = [...probeMethods, "download", "again"] as const;
type What = (typeof whats)[number];
/** By crawler, in ms; null where one did not measure it. */
type Case = Readonly<Record<What, readonly (number | null)[]>>;

type Child = ChildProcessByStdio<Writable, Readable, null>;
const children: Child[] = [];
const namespaces: string[] = [];

function inNamespace(namespace: string, ...args: readonly string[]): Child {
  const child = spawn("ip", ["netns", "exec", namespace, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  return child;
}

const ip = (...args: string[]) => execFileSync("ip", args, { stdio: ["ignore", "ignore", "inherit"] });

function addNamespace(place: string): string {
  const namespace = `nearcrawl-${process.pid}-${place}`;
  ip("netns", "add", namespace);
  namespaces.push(namespace);
  ip("-n", namespace, "link", "set", "lo", "up");
  return namespace;
}

async function removeAll(): Promise<void> {
  const ending = children.splice(0).map(async (child) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  });
  await Promise.all(ending);
  for (const namespace of namespaces.splice(0)) ip("netns", "del", namespace);
}

class MeasuringCrawler {
  readonly #child: Child;
  readonly #asked = new Map<number, (ms: number | null) => void>();
  readonly methods: Promise<readonly ProbeMethod[]>;
  #lastId = 0;

  constructor(namespace: string) {
    const script = join(import.meta.dirname, "probe-methods/measuring-crawler.ts");
    this.#child = inNamespace(namespace, process.execPath, ...benchNodeArgs, script);
    const lines = createInterface({ input: this.#child.stdout });
    this.methods = once(lines, "line").then(([line]) => JSON.parse(String(line)).methods);
    lines.on("line", (line) => {
      const { id, ms } = JSON.parse(line) as { id?: number; ms: number | null };
      if (id !== undefined) this.#asked.get(id)?.(ms);
    });
  }

  async measure(what: Errand["what"], address: string): Promise<number | null> {
    const id = ++this.#lastId;
    const answered = new Promise<number | null>((resolve) => this.#asked.set(id, resolve));
    this.#child.stdin.write(`${JSON.stringify({ id, what, address } satisfies Errand)}\n`);
    return await answered.finally(() => this.#asked.delete(id));
  }
}

interface Site {
  readonly address: string;
  readonly bytes: number;
  readonly thinkMs: number;
}

/** The first of a world's sites, each address once. */
function sitesOf(world: World, seed: number): Site[] {
  const draw = drawing(seed);
  const byAddress = new Map(world.sites.map((site) => [site.address, site]));
  return [...byAddress.values()].slice(0, sitesPerWorld).map(({ address, serverDelayMs }) => {
    const bytes = page.medianBytes * Math.exp(page.spread * draw());
    const bounded = Math.round(Math.min(page.mostBytes, Math.max(page.leastBytes, bytes)));
    return { address, bytes: bounded, thinkMs: serverDelayMs };
  });
}

/** Standard normals, the same for the same seed (a multiplicative generator, Box and Muller). */
function drawing(seed: number): () => number {
  let state = seed;
  const unit = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  return () => Math.sqrt(-2 * Math.log(unit())) * Math.cos(2 * Math.PI * unit());
}

async function measureWorld(seed: number, condition: Condition): Promise<Case[]> {
  const world = generateWorld({ seed, sites: 3 * sitesPerWorld, crawlers });
  const sites = sitesOf(world, seed);
  const places = world.crawlers.map((_, index) => `c${index}`);
  const router = spawn("python3", [join(import.meta.dirname, "../support/small-internet/router.py")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(router);
  const heard = createInterface({ input: router.stdout });
  const tell = async (line: object) => {
    const answer = once(heard, "line");
    router.stdin.write(`${JSON.stringify(line)}\n`);
    await answer;
  };
  const siteOneWayMs = Object.fromEntries(
    sites.map(({ address }) => [
      address,
      Object.fromEntries(places.map((place, index) => [place, world.rttMs(index, address)! / 2])),
    ]),
  );
  await tell({
    places: Object.fromEntries([
      ...sites.map(({ address }) => [address, "web"]),
      ...world.crawlers.map(({ address }, index) => [address, places[index]]),
    ]),
    siteOneWayMs,
    queueMs: condition.queueMs,
  });
  const connect = async (place: string, addresses: readonly string[]) => {
    const namespace = addNamespace(place);
    await tell({ namespaces: { [place]: namespace } });
    const inside = (...args: string[]) => ip("-n", namespace, ...args);
    inside("addr", "add", `${addresses[0]}/32`, "dev", "tun0");
    inside("link", "set", "tun0", "txqueuelen", "5000", "up");
    for (const address of addresses.slice(1)) inside("addr", "add", `${address}/32`, "dev", "lo");
    inside("route", "add", "default", "dev", "tun0", "src", addresses[0]!);
    return namespace;
  };
  try {
    const web = await connect(
      "web",
      sites.map(({ address }) => address),
    );
    const { thinks, spread } = condition;
    const plan = sites.map(({ address, bytes, thinkMs }) => [
      address,
      { bytes, thinkMs: thinks ? thinkMs : 0, spread },
    ]);
    const script = join(import.meta.dirname, "probe-methods/sites.mjs");
    const server = inNamespace(web, process.execPath, script, JSON.stringify(Object.fromEntries(plan)));
    await once(server.stdout, "data");
    const fleet: MeasuringCrawler[] = [];
    for (const [index, place] of places.entries())
      fleet.push(new MeasuringCrawler(await connect(place, [world.crawlers[index]!.address])));
    for (const crawler of fleet) {
      const methods = await crawler.methods;
      if (!methods.includes("icmp")) console.log("skipped: icmp: this machine has no ping that answers");
    }
    return await measureAll(sites, fleet);
  } finally {
    await removeAll();
  }
}

async function measureAll(sites: readonly Site[], fleet: readonly MeasuringCrawler[]): Promise<Case[]> {
  const cases: Case[] = [];
  const waiting = [...sites.entries()];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, { address }] = next;
      const times: Partial<Record<What, readonly (number | null)[]>> = {};
      // Nothing goes first everywhere.
      const order = [...whats.slice(index % whats.length), ...whats.slice(0, index % whats.length)];
      for (const what of order)
        times[what] = await Promise.all(
          fleet.map(async (crawler) => await crawler.measure(what === "again" ? "download" : what, address)),
        );
      cases.push(times as Case);
    }
  };
  await Promise.all(Array.from({ length: sitesAtOnce }, work));
  return cases;
}

interface Tally {
  readonly cases: number;
  readonly named: number;
  /** What the downloads of those named took longer than the fastest, in ms. */
  readonly lostMs: readonly number[];
}

/** Cases in which all measured it and downloaded. */
function tallyOf(what: What, cases: readonly Case[]): Tally {
  const whole = cases.filter(
    (one) => one[what].every((ms) => ms !== null) && one.download.every((ms) => ms !== null),
  );
  const judged = whole.map((one) => {
    const downloads = one.download as readonly number[];
    const chosen = downloads[leastAt(one[what] as readonly number[])]!;
    return chosen - Math.min(...downloads);
  });
  return { cases: whole.length, named: judged.filter((ms) => ms === 0).length, lostMs: judged };
}

const leastAt = (times: readonly number[]) => times.indexOf(Math.min(...times));
const sorted = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b);
const median = (numbers: readonly number[]) => sorted(numbers)[Math.floor(numbers.length / 2)] ?? 0;
const percent = (share: number) => (100 * share).toFixed(1);

const missing = smallInternetNeeds();
if (missing === null) {
  const rows: string[][] = [];
  try {
    for (const condition of conditions) {
      const worlds: Case[][] = [];
      for (const seed of seeds) worlds.push(await measureWorld(seed, condition));
      for (const what of whats.filter((one) => one !== "download")) {
        const tallies = worlds.map((cases) => tallyOf(what, cases));
        const shares = sorted(tallies.map(({ cases, named }) => named / Math.max(1, cases)));
        const all = tallies.reduce((sum, { cases }) => sum + cases, 0);
        const named = tallies.reduce((sum, one) => sum + one.named, 0);
        const lost = tallies.flatMap(({ lostMs }) => lostMs);
        const { low, high } = wilsonInterval(named, all);
        rows.push([
          condition.name,
          what === "again" ? "the download before" : what,
          percent(median(shares)),
          `${percent(shares[0]!)} to ${percent(shares.at(-1)!)}`,
          `${percent(low)} to ${percent(high)}`,
          `${all}`,
          (lost.reduce((sum, ms) => sum + ms, 0) / Math.max(1, lost.length)).toFixed(1),
        ]);
        figure(`${condition.name}, ${what}`, percentNumber(median(shares)), "%", { higherIsBetter: true });
      }
    }
  } finally {
    await removeAll();
  }
  const columns = [
    "condition",
    "named by",
    "median, %",
    "least to most, %",
    "95 % interval",
    "cases",
    "lost, ms",
  ];
  console.log(
    formatTable(
      columns.map((title) => ({ title })),
      rows,
    ),
  );
}
process.exit();

function percentNumber(share: number): number {
  return Math.round(1000 * share) / 10;
}
