/**
 * WEB-SAILOR's figures 4 and 6 in the emulated Internet: pages a second of client 1 (.com, 25 connections) and client 2
 * (.edu .net .org, 10 connections), a third client (.org, 10 connections) added while they run, and the connections
 * that pace messages leave each of them. Beside: URLs fetched by two clients, and pages outside a client's domain sets.
 * Run: npm run bench -- web-sailor [seconds] (100 by default); the pictures are written beside the results.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { join } from "node:path";
import { domainSetHolds, parseDomainSet } from "#core/dset/domain-set";
import { type Client, sailingFleet } from "./web-sailor/sailing-fleet.ts";
import { connectionPicture, performancePicture, type Sample } from "./web-sailor/sailing-pictures.ts";

const totalSeconds = Number(process.argv[2] ?? 100);
/** In the paper seeds come one by one; here a few, then the front pages of all sites. */
const allSeedsAt = Math.round(totalSeconds * 0.1);
const thirdClientAt = Math.round(totalSeconds * 0.65);
const sites = { com: 260, edu: 30, net: 25, org: 85 };
const pace = { slowDownUnder: 5, hurryUpOver: 20, everySeconds: 2 };

const fleet = await sailingFleet({
  ...{ sites, pace, crawlers: 3 },
  pagesPerSite: 8,
  politenessFloorMs: 2500,
});
const startedMs = Date.now();
const seconds = () => (Date.now() - startedMs) / 1000;
const samples: Sample[] = [];

try {
  console.log(
    `${availableParallelism()} x ${cpus()[0]?.model ?? "?"}, Node ${process.version}, load ${loadavg()[0]!.toFixed(1)} before, ${Object.entries(
      sites,
    )
      .map(([domain, count]) => `${count} .${domain}`)
      .join(", ")} sites`,
  );
  const first = await fleet.addClient(25, [".com"]);
  const second = await fleet.addClient(10, [".edu .net .org"]);
  await sailUntil(allSeedsAt, "few seeds", seedsOf(3));
  await sailUntil(
    thirdClientAt,
    "all seeds",
    fleet.world.sites.map(({ host }) => host),
  );
  const third = await fleet.addClient(10, [".org"]);
  await fleet.give(second, [".edu .net"]);
  console.log(`at ${seconds().toFixed(0)} s: ${third.name} comes with .org, ${second.name} keeps .edu .net`);
  await sailUntil(totalSeconds, "a third client", []);
  await report([first, second, third]);
} finally {
  await fleet.close();
}
process.exit();

/** The first few hosts of each top-level domain. */
function seedsOf(count: number): string[] {
  return Object.keys(sites).flatMap((domain) =>
    fleet.world.sites
      .map(({ host }) => host)
      .filter((host) => host.endsWith(`.${domain}`))
      .slice(0, count),
  );
}

async function sailUntil(second: number, phase: string, hosts: readonly string[]): Promise<void> {
  if (hosts.length > 0) await fleet.admit(hosts);
  while (seconds() < second) {
    samples.push({
      second: seconds(),
      phase,
      clients: fleet.clients.map(({ crawler, connections }) => {
        const asked = crawler.report().work?.pace ?? null;
        const open = crawler.usage().find(({ limit }) => limit === "openConnections")?.used ?? 0;
        const places = Math.min(connections, asked?.places ?? connections);
        return { places, open, pace: asked?.pace ?? "steady" };
      }),
    });
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

async function report(clients: readonly Client[]): Promise<void> {
  const rates = await pagesBySecond(clients);
  const folder = join(import.meta.dirname, "results");
  writeFileSync(
    join(folder, "web-sailor-performance.svg"),
    performancePicture(rates, { allSeedsAt, thirdClientAt, totalSeconds }),
  );
  writeFileSync(join(folder, "web-sailor-connections.svg"), connectionPicture(samples, totalSeconds));
  const phases = [
    { name: "few seeds", from: 3, to: allSeedsAt },
    { name: "all seeds", from: allSeedsAt + 25, to: thirdClientAt },
    { name: "a third client", from: thirdClientAt + 5, to: totalSeconds },
  ];
  console.log("\npages a second       client 1  client 2  client 3     total");
  for (const { name, from, to } of phases) {
    const means = rates.map((pages) => meanOf(pages.slice(from, to)));
    const row = [...means, means.reduce((sum, mean) => sum + mean, 0)];
    console.log(`${name.padEnd(18)} ${row.map((mean) => mean.toFixed(1).padStart(9)).join(" ")}`);
  }
  console.log("\nconnections (allowed/in use) at the end of each part");
  for (const { name } of phases) {
    const last = samples.filter(({ phase }) => phase === name).at(-1);
    const shown = last?.clients.map(({ places, open, pace: told }) => `${places}/${open} (${told})`);
    console.log(`${name.padEnd(18)} ${shown?.join("  ") ?? ""}`);
  }
  await counted(clients);
  console.log(`load ${loadavg()[0]!.toFixed(1)} after`);
}

/** By client and second since the start. */
async function pagesBySecond(clients: readonly Client[]): Promise<number[][]> {
  const { rows } = await fleet.pool.query<{ name: string; second: number; pages: number }>(
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

async function counted(clients: readonly Client[]): Promise<void> {
  const { rows } = await fleet.pool.query<{ urls: number; fetches: number; twice: number; seals: number }>(
    `select count(*)::int as urls, sum(fetches)::int as fetches, count(*) filter (where crawlers > 1)::int as twice
     from (
       select count(*) as fetches, count(distinct crawler_id) as crawlers
       from page_fetch
       group by host_hash, url_hash
     ) u`,
  );
  const { urls, fetches, twice } = rows[0]!;
  console.log(`\n${fetches} fetches of ${urls} URLs, ${twice} of them by two clients`);
  const leases = await fleet.pool.query<{ leases: number }>("select count(*)::int as leases from lease");
  console.log(
    `${clients.length} connections to the coordinator, none between clients; ${leases.rows[0]!.leases} leases`,
  );
  const { rows: places } = await fleet.pool.query<{ name: string; host: string; late: boolean }>(
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
  console.log(
    `${strays.length} hosts fetched from outside a client's domain sets; ${late.length} .org hosts by client 2 later than 10 s after they were client 3's`,
  );
}

function setOf(text: string) {
  const set = parseDomainSet(text);
  if (typeof set === "string") throw new Error(set);
  return set;
}

function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
