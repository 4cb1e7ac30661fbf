/**
 * What handing out work costs, in parts, of which those are measured that are named behind the word; all without one:
 *
 *   orders    slices of 20 URLs of 20 hosts with 2,000 due URLs each, in every order, against breadth-first
 *   subnet    20 of 1,000, 100,000 and 1,000,000 hosts in one subnet; and of a crawler that others stand before
 *   turns     2,000 crawlers that ask, give back and ask again: slices a second
 *
 * Run: npm run bench -- leases [part …] [--most 100000] (no subnet larger than that) [--rounds 3]
 */
import { parseArgs } from "node:util";
import type { FrontierOrder, OrderName } from "#coordinator/frontier/order/strategies";
import { orderNames } from "#coordinator/frontier/order/strategies";
import { figure } from "./figure.ts";
import {
  type LeaseTimes,
  type LeaseWorld,
  leaseWorld,
  measureAsks,
  measureTurns,
  seedFleet,
  seedHosts,
  seedRanks,
} from "./leases/lease-world.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    most: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "3" },
  },
});
const most = Number(values.most);
const rounds = Number(values.rounds);
const sizes = [2_000, 100_000, 1_000_000].filter((size) => size <= most);

const parts: Readonly<Record<string, (world: LeaseWorld) => Promise<void>>> = {
  orders,
  subnet,
  turns,
};
const world = await leaseWorld();
try {
  for (const [name, measure] of Object.entries(parts)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    console.log(`\n## ${name}`);
    await measure(world);
  }
} finally {
  await world.close();
}

function inOrder(name: OrderName): FrontierOrder {
  return { name, newShare: 0.9, worthShare: 0.75 };
}

/**
 * Each order has a crawler and 20 hosts of its own, and they ask in turn, so that what else the machine does meets all of
 * them. A list used up is made anew after 13 to 30 leases of its host.
 */
async function orders(on: LeaseWorld): Promise<void> {
  const asksOfEach = 20;
  await seedFleet(on.pool, { crawlers: orderNames.length, subnets: 100 });
  await seedHosts(on.pool, { hosts: 100, urlsPerHost: 2_000, subnets: 100 });
  await seedRanks(on.pool);
  const crawlerOf = (name: OrderName) => orderNames.indexOf(name) + 1;
  const ask = (name: OrderName) => ({
    ...{ crawler: crawlerOf(name), hosts: 20, urlsPerHost: 20, order: inOrder(name) },
  });
  console.log(
    "| round | order | ms an ask, median (10 to 90 %, most) | Postgres ms | coordinator ms | in all, × breadth-first | Postgres, × breadth-first |",
  );
  console.log("|---|---|---|---|---|---|---|");
  // Round 0 makes plans, fills caches and makes the first lists: it is told, and counts for nothing.
  for (let round = 0; round <= rounds; round++) {
    const times = new Map<OrderName, LeaseTimes>();
    for (let turn = 0; turn < asksOfEach; turn++) {
      for (const name of orderNames) {
        const one = await measureAsks(on, [[ask(name)]], { atOnce: 1, finish: true });
        const before = times.get(name);
        times.set(name, before === undefined ? one : sumOf(before, one));
      }
    }
    const least = times.get("breadth-first")!;
    for (const [name, one] of times) {
      const inAll = (one.serverMs + one.ownMs) / (least.serverMs + least.ownMs);
      console.log(
        `| ${round} | ${name} | ${costs(one)} | ${inAll.toFixed(2)} | ${(one.serverMs / least.serverMs).toFixed(2)} |`,
      );
      if (round > 0) figure(name, (one.serverMs + one.ownMs) / one.asks, "ms CPU an ask");
    }
  }
}

function sumOf(a: LeaseTimes, b: LeaseTimes): LeaseTimes {
  return {
    slices: a.slices + b.slices,
    urls: a.urls + b.urls,
    asks: a.asks + b.asks,
    empty: a.empty + b.empty,
    serverMs: a.serverMs + b.serverMs,
    ownMs: a.ownMs + b.ownMs,
    tookMs: [...a.tookMs, ...b.tookMs],
    wallMs: a.wallMs + b.wallMs,
  };
}

/** Crawler 1 has the subnet; crawler 2 has 20 hosts of another, all of which became due after them. */
async function subnet(on: LeaseWorld): Promise<void> {
  console.log(
    "| hosts in the subnet | who asks | order | ms an ask, median (10 to 90 %, most) | Postgres ms | coordinator ms |",
  );
  console.log("|---|---|---|---|---|---|");
  for (const hosts of sizes) {
    await seedFleet(on.pool, { crawlers: 2, subnets: 2 });
    await seedHosts(on.pool, { hosts, urlsPerHost: 1, subnets: 1 });
    await on.pool.query("update delegation set crawler_id = subnet_id");
    await on.pool.query(
      `insert into frontier_host (host_hash, host, state, addresses, subnet_id, due_at, url_count)
       select n, 'late' || n || '.example', 'resolved', array['64.0.0.0'::inet + n], 2, now() - interval '1 minute', 1
       from generate_series(1, 2000) n`,
    );
    await on.pool.query(
      `insert into frontier_url (host_hash, url_hash, url, next_fetch_at)
       select n, n, 'http://late' || n || '.example/', now() - interval '1 minute' from generate_series(1, 2000) n`,
    );
    await on.pool.query("analyze frontier_host, frontier_url");
    for (const name of ["breadth-first", "back-links"] as const) {
      for (const crawler of [1, 2]) {
        const ask = { crawler, hosts: 20, urlsPerHost: 20, order: inOrder(name) };
        const asks = Array.from({ length: 40 }, () => [ask]);
        const times = await measureAsks(on, asks, { atOnce: 1, finish: false });
        const who = crawler === 1 ? "whose it is" : "another";
        console.log(`| ${hosts} | ${who} | ${name} | ${costs(times)} |`);
      }
    }
  }
}

/** As in the fleet's bench: hosts of one URL, five subnets a crawler. */
async function turns(on: LeaseWorld): Promise<void> {
  const crawlers = 2_000;
  await seedFleet(on.pool, { crawlers, subnets: 5 * crawlers });
  console.log(
    "| order | asked at once | hosts an ask | slices | slices/s | Postgres ms a slice | coordinator ms a slice | in all |",
  );
  console.log("|---|---|---|---|---|---|---|---|");
  for (const name of ["breadth-first", "back-links"] as const) {
    await seedHosts(on.pool, { hosts: 20_000, urlsPerHost: 1, subnets: 5 * crawlers });
    for (const hosts of [1, 2, 8]) {
      for (let round = 0; round < rounds; round++) {
        const times = await measureTurns(on, {
          crawlers,
          asks: Math.ceil(8 / hosts),
          hosts,
          order: inOrder(name),
        });
        const { slices, serverMs, ownMs, wallMs } = times;
        const each = (ms: number) => (ms / slices).toFixed(3);
        console.log(
          `| ${name} | ${crawlers} | ${hosts} | ${slices} | ${((1000 * slices) / wallMs).toFixed(0)} | ${each(serverMs)} | ${each(ownMs)} | ${each(serverMs + ownMs)} |`,
        );
      }
    }
  }
}

function costs({ tookMs, serverMs, ownMs, asks }: LeaseTimes): string {
  return `${spread(tookMs)} | ${(serverMs / asks).toFixed(2)} | ${(ownMs / asks).toFixed(2)}`;
}

function spread(tookMs: readonly number[]): string {
  const sorted = tookMs.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor(part * (sorted.length - 1))]!.toFixed(1);
  return `${at(0.5)} (${at(0.1)} to ${at(0.9)}, ${at(1)})`;
}
