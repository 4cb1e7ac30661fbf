/**
 * WEB-SAILOR in the emulated Internet: pages per second of client 1 (.com, 25 connections) and client 2 (.edu .net .org, 10
 * connections), a third client (.org, 10 connections) added during the run, and how steady each rate is; the connections that pace
 * messages leave to each; and messages per page. Run: npm run bench -- web-sailor [seconds] (default 120); prints the tables of
 * test/bench/results/web-sailor.md. Whose pages come first: npm run lab -- order.
 */
import { availableParallelism, cpus, loadavg } from "node:os";
import { domainSetHolds, parseDomainSet } from "#coordinator/place/domain-sets/domain-set";
import type { Carried } from "./web-sailor/counting-relay.ts";
import { type Client, sailingFleet } from "./web-sailor/sailing-fleet.ts";

const totalSeconds = Number(process.argv[2] ?? 120);
/** In the paper seeds come one by one; here a few, then the front pages of all sites. */
const allSeedsAt = Math.round(totalSeconds / 12);
const thirdClientAt = Math.round((totalSeconds * 75) / 120);
/** Before, subnets are still delegated; after, clients learn of changes. */
const settledAt = Math.round((totalSeconds * 40) / 120);
const settleSeconds = 5;
const windowSeconds = 5;
const sites = { com: 260, edu: 30, net: 25, org: 85 };
const pagesPerSite = 8;
const pace = { slowDownUnder: 5, hurryUpOver: 20, everySeconds: 2 };
const parts = [
  { name: "before the third client", from: settledAt, to: thirdClientAt },
  { name: "with the third client", from: thirdClientAt + settleSeconds, to: totalSeconds },
];

const beginning =
  `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${availableParallelism()} x ` +
  `${cpus()[0]?.model ?? "?"}, load average ${load()} at the beginning`;
console.log(beginning);
await sail();
print([`${beginning} and ${load()} at the end; ${Math.round(process.uptime())} s in all.`]);
process.exit();

function print(lines: readonly string[]): void {
  console.log(`\n${lines.join("\n")}`);
}

/** A sample, every half second. */
interface Sample {
  /** Since the start. */
  readonly second: number;
  readonly phase: string;
  readonly clients: readonly {
    /** Connections that its host's limit and its pace allow. */
    readonly places: number;
    readonly open: number;
    readonly pace: "slow-down" | "steady" | "hurry-up";
    readonly wire: Carried;
  }[];
}

async function sail(): Promise<void> {
  const fleet = await sailingFleet({
    ...{ sites, pace, pagesPerSite },
    politenessFloorMs: 2500,
  });
  const startedMs = Date.now();
  const samples: Sample[] = [];
  const sailUntil = async (second: number, phase: string) => {
    for (;;) {
      const now = (Date.now() - startedMs) / 1000;
      samples.push(sampleOf(fleet.clients, { second: now, phase }));
      if (now >= second) return;
      await new Promise((resolve) => setTimeout(resolve, Math.min(500, 1000 * (second - now))));
    }
  };
  try {
    const first = await fleet.addClient(25, [".com"]);
    const second = await fleet.addClient(10, [".edu .net .org"]);
    await fleet.admit(seedsOf(fleet.world.sites, 3));
    await sailUntil(allSeedsAt, "few seeds");
    await fleet.admit(fleet.world.sites.map(({ host }) => host));
    await sailUntil(thirdClientAt, "all seeds");
    await fleet.addClient(10, [".org"]);
    await fleet.give(second, [".edu .net"]);
    await sailUntil(totalSeconds, "a third client");
    await report(fleet, { startedMs, samples, clients: [first, second, fleet.clients[2]!] });
  } finally {
    await fleet.close();
  }
}

/** The first few hosts of each top-level domain. */
function seedsOf(all: readonly { readonly host: string }[], count: number): string[] {
  return Object.keys(sites).flatMap((domain) =>
    all
      .map(({ host }) => host)
      .filter((host) => host.endsWith(`.${domain}`))
      .slice(0, count),
  );
}

function sampleOf(clients: readonly Client[], at: Pick<Sample, "second" | "phase">): Sample {
  return {
    ...at,
    clients: clients.map(({ crawler, connections, wire }) => {
      const asked = crawler.report().work?.pace ?? null;
      const open = crawler.usage().find(({ limit }) => limit === "openConnections")?.used ?? 0;
      const places = Math.min(connections, asked?.places ?? connections);
      return { places, open, pace: asked?.pace ?? "steady", wire: wire.carried() };
    }),
  };
}

interface Sailed {
  readonly startedMs: number;
  readonly samples: readonly Sample[];
  readonly clients: readonly Client[];
}

type Fleet = Awaited<ReturnType<typeof sailingFleet>>;

async function report(fleet: Fleet, sailed: Sailed): Promise<void> {
  const rates = await pagesBySecond(fleet, sailed);
  printRates(rates);
  printConnections(sailed.samples);
  printMessages(rates, sailed.samples);
  await printPromises(fleet, sailed);
}

/** By client and second since the start. */
async function pagesBySecond({ pool }: Fleet, { clients, startedMs }: Sailed): Promise<number[][]> {
  const { rows } = await pool.query<{ name: string; second: number; pages: number }>(
    `select c.name, floor(extract(epoch from f.fetched_at) - $1)::int as second, count(*)::int as pages
     from page_fetch f
     join crawler c using (crawler_id)
     group by 1, 2`,
    [startedMs / 1000],
  );
  return clients.map(({ name }) => {
    const pages = new Array<number>(totalSeconds).fill(0);
    for (const row of rows) if (row.name === name && row.second < totalSeconds) pages[row.second] = row.pages;
    return pages;
  });
}

function printRates(rates: readonly (readonly number[])[]): void {
  const total = rates[0]!.map((_, second) => rates.reduce((sum, pages) => sum + pages[second]!, 0));
  const lines = [
    `| | pages a second | variation between windows of ${windowSeconds} s | of arrivals by chance | second half to first |`,
    "|---|---|---|---|---|",
  ];
  for (const [at, { name, from, to }] of parts.entries()) {
    const series = [...rates.slice(0, at === 0 ? 2 : 3), total];
    for (const [client, pages] of series.entries()) {
      const who = client === series.length - 1 ? "total" : `client ${client + 1}`;
      const { mean, variation, byChance, trend } = steadinessOf(pages, { from, to, windowSeconds });
      lines.push(
        `| ${name} (${from} to ${to} s), ${who} | ${mean.toFixed(1)} | ${percent(variation)} | ${percent(byChance)} | ${trend.toFixed(2)} |`,
      );
    }
  }
  print(lines);
}

function printConnections(samples: readonly Sample[]): void {
  const lines = [
    "| allowed by limit and pace / in use | client 1 | client 2 | client 3 |",
    "|---|---|---|---|",
  ];
  for (const phase of ["few seeds", "all seeds", "a third client"]) {
    const last = samples.findLast((sample) => sample.phase === phase);
    const shown = [0, 1, 2].map((client) => {
      const one = last?.clients[client];
      return one === undefined ? "" : `${one.places} / ${one.open}, ${one.pace}`;
    });
    lines.push(`| ${phase} | ${shown.join(" | ")} |`);
  }
  print(lines);
}

/** Between clients and coordinator; clients have no other connection. */
function printMessages(rates: readonly (readonly number[])[], samples: readonly Sample[]): void {
  const lines = [
    "| | pages | messages up, a page | messages down, a page | bytes up, a page | bytes down, a page |",
    "|---|---|---|---|---|---|",
  ];
  for (const { name, from, to } of parts) {
    const pages = rates.reduce((sum, one) => sum + sumOf(one.slice(from, to)), 0);
    const [before, after] = [carriedAt(samples, from), carriedAt(samples, to)];
    const perPage = (of: "messagesUp" | "messagesDown" | "bytesUp" | "bytesDown") =>
      (after[of] - before[of]) / pages;
    const messages = [perPage("messagesUp"), perPage("messagesDown")].map((count) => count.toFixed(2));
    const bytes = [perPage("bytesUp"), perPage("bytesDown")].map((count) => count.toFixed(0));
    lines.push(`| ${name} | ${pages} | ${[...messages, ...bytes].join(" | ")} |`);
  }
  print(lines);
}

/** By all clients together, at the first sample after that second. */
function carriedAt(samples: readonly Sample[], second: number) {
  const sample = samples.find((one) => one.second >= second) ?? samples.at(-1)!;
  const wires = sample.clients.map(({ wire }) => wire);
  const sum = (of: "messagesUp" | "messagesDown" | "bytesUp" | "bytesDown") =>
    sumOf(wires.map((wire) => wire[of]));
  return {
    messagesUp: sum("messagesUp"),
    messagesDown: sum("messagesDown"),
    bytesUp: sum("bytesUp"),
    bytesDown: sum("bytesDown"),
  };
}

async function printPromises({ pool }: Fleet, { clients, startedMs, samples }: Sailed): Promise<void> {
  const { rows } = await pool.query<{ urls: number; fetches: number; twice: number }>(
    `select count(*)::int as urls, sum(fetches)::int as fetches, count(*) filter (where crawlers > 1)::int as twice
     from (
       select count(*) as fetches, count(distinct crawler_id) as crawlers
       from page_fetch
       group by host_hash, url_hash
     ) u`,
  );
  const { urls, fetches, twice } = rows[0]!;
  const leases = await pool.query<{ leases: number }>("select count(*)::int as leases from lease");
  const { rows: places } = await pool.query<{ name: string; host: string; late: boolean }>(
    `select distinct c.name, p.host, f.fetched_at > to_timestamp($1) as late
     from page_fetch f
     join crawler c using (crawler_id)
     join frontier_host p using (host_hash)`,
    [startedMs / 1000 + thirdClientAt + 10],
  );
  const sets = [".com", ".edu .net .org", ".org"].map(setOf);
  const strays = places.filter(({ name, host }) => {
    const at = clients.findIndex((client) => client.name === name);
    return !domainSetHolds(sets[at]!, { host, language: null });
  });
  const late = places.filter(
    ({ name, host, late: isLate }) => isLate && name === clients[1]!.name && host.endsWith(".org"),
  );
  const connections = sumOf((samples.at(-1)?.clients ?? []).map(({ wire }) => wire.connections));
  print([
    "| | |",
    "|---|---|",
    `| URLs fetched by two clients | ${twice} of ${urls} |`,
    `| fetches of one URL more than once | ${fetches - urls} |`,
    `| hosts fetched from outside a client's domain sets | ${strays.length} |`,
    `| .org hosts still fetched by client 2 later than 10 s after they were client 3's | ${late.length} |`,
    `| connections to the coordinator, counted | ${connections} for ${clients.length} clients |`,
    `| leases | ${leases.rows[0]!.leases}, one for ${(urls / leases.rows[0]!.leases).toFixed(1)} pages |`,
  ]);
}

// How steady a rate is: its mean, and its variation between windows, beside that of chance.

interface Steadiness {
  /** Pages a second. */
  readonly mean: number;
  /** Standard deviation over mean, of pages in windows. */
  readonly variation: number;
  /** The same of Poisson arrivals at that rate: one over the root of the pages in a window. */
  readonly byChance: number;
  /** Mean of the second half divided by that of the first. */
  readonly trend: number;
}

/** `pages`: by second; `from` and `to` in seconds, of which whole windows are taken. */
function steadinessOf(
  pages: readonly number[],
  { from, to, windowSeconds }: { readonly from: number; readonly to: number; readonly windowSeconds: number },
): Steadiness {
  const windows = Array.from({ length: Math.floor((to - from) / windowSeconds) }, (_, at) => {
    const start = from + at * windowSeconds;
    return sumOf(pages.slice(start, start + windowSeconds));
  });
  const mean = meanOf(windows);
  const deviation = Math.sqrt(sumOf(windows.map((count) => (count - mean) ** 2)) / (windows.length - 1));
  const half = Math.floor(windows.length / 2);
  return {
    mean: mean / windowSeconds,
    variation: deviation / mean,
    byChance: 1 / Math.sqrt(mean),
    trend: meanOf(windows.slice(-half)) / meanOf(windows.slice(0, half)),
  };
}

function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : sumOf(values) / values.length;
}

function setOf(text: string) {
  const set = parseDomainSet(text);
  if (typeof set === "string") throw new Error(set);
  return set;
}

/** A share in whole percent, as tables have it. */
function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function load(): string {
  return loadavg()[0]!.toFixed(1);
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
