/**
 * A frontier for measuring leases: crawlers, subnets of a /24 each, hosts at addresses of their own in them, made in the
 * database; and the processor time that leases take of Postgres and of this process.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import type { FrontierStore } from "#coordinator/frontier/frontier";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import type { FrontierOrder } from "#coordinator/frontier/order/strategies";
import { asCrawlerId, asLeaseId } from "#core/ids";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { processorTime, serverPid } from "../processor-time.ts";

export interface LeaseWorld {
  readonly pool: Pool;
  readonly frontier: FrontierStore;
  /** The server's first process. */
  readonly server: number;
  readonly close: () => Promise<void>;
}

export async function leaseWorld(): Promise<LeaseWorld> {
  const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
  const database = await openDatabase({
    databaseUrl: process.env.DATABASE_URL ?? null,
    home,
    schema: `bench_${process.pid}`,
  });
  const { pool } = database;
  await migrate(database);
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const close = async () => {
    await pool.query(`drop schema "${database.schema}" cascade`);
    await database.close();
    if (!process.env.DATABASE_URL) await stopEmbeddedPostgres(home);
    rmSync(home, { recursive: true, force: true });
  };
  return { pool, frontier: createFrontierStore(pool), server: await serverPid(pool), close };
}

export interface Fleet {
  readonly crawlers: number;
  readonly subnets: number;
}

export async function seedFleet(pool: Pool, { crawlers, subnets }: Fleet): Promise<void> {
  await pool.query(
    "truncate frontier_host, frontier_url, url_rank, lease, address_turn, delegation, subnet, crawler restart identity cascade",
  );
  await pool.query("insert into crawler (name) select 'c' || n from generate_series(1, $1::int) n", [
    crawlers,
  ]);
  await pool.query(
    `insert into subnet (first_address, last_address, registry, added_in)
     select '16.0.0.0'::inet + n * 256, '16.0.0.0'::inet + n * 256 + 255, 'arin', 1
     from generate_series(0, $1::int - 1) n`,
    [subnets],
  );
  await pool.query(
    `insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
     select subnet_id, 1 + subnet_id % $1::int, 'own-subnet', true, now() from subnet`,
    [crawlers],
  );
  await pool.query("analyze crawler, subnet, delegation");
}

export interface Hosts {
  readonly hosts: number;
  readonly urlsPerHost: number;
  /** Spread evenly over the first so many subnets. */
  readonly subnets: number;
}

/** All due; half of the URLs were visited before, with what orders ask of them. */
export async function seedHosts(pool: Pool, { hosts, urlsPerHost, subnets }: Hosts): Promise<void> {
  await pool.query("truncate frontier_host, frontier_url, url_rank, lease, address_turn");
  await pool.query("truncate url_shortlist");
  await pool.query(
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, due_at, url_count)
     select hashint8extended(n, 7), 'h' || n || '.example', 'resolved', array['32.0.0.0'::inet + n],
       1 + n % $3::int, now() - interval '1 day' + n * interval '1 ms', $2
     from generate_series(1, $1::int) n`,
    [hosts, urlsPerHost, subnets],
  );
  await pool.query(
    `insert into frontier_url (host_hash, url_hash, url, back_links, next_fetch_at, last_fetched_at, out_links,
       change_ratio, changes_per_day)
     select hashint8extended(h, 7), hashint8extended(u, h), 'http://h' || h || '.example/page/' || u, u * 31 % 97,
       now() - interval '1 day' + make_interval(secs => 80000.0 * u / $2::int),
       case when u % 2 = 0 then now() - interval '9 days' end, u % 50, (u % 10) / 10.0, (u % 30) / 10.0
     from generate_series(1, $1::int) h, generate_series(1, $2::int) u`,
    [hosts, urlsPerHost],
  );
  await pool.query("analyze frontier_host, frontier_url");
}

export async function seedRanks(pool: Pool): Promise<void> {
  await pool.query(
    `insert into url_rank (host_hash, url_hash, page_rank, ranked_at)
     select host_hash, url_hash, 1.0 / (1 + abs(url_hash % 1000)), now() from frontier_url`,
  );
  await pool.query("analyze url_rank");
}

interface Ask {
  readonly crawler: number;
  readonly hosts: number;
  readonly urlsPerHost: number;
  readonly order?: FrontierOrder;
}

/** Sums over all requests: `serverMs` and `ownMs` of processor time, Postgres' and this process'. */
export interface LeaseTimes {
  readonly slices: number;
  readonly urls: number;
  readonly asks: number;
  /** Requests that got nothing. */
  readonly empty: number;
  readonly serverMs: number;
  readonly ownMs: number;
  /** Of each request, from asking to the answer. */
  readonly tookMs: readonly number[];
  /** From the first request to the last answer, without what is done between rounds. */
  readonly wallMs: number;
}

/** Asks so many at a time; what is leased is finished (its URLs due in a week) between rounds, outside the measure. */
export async function measureAsks(
  world: LeaseWorld,
  rounds: readonly (readonly Ask[])[],
  options: { readonly atOnce: number; readonly finish: boolean },
): Promise<LeaseTimes> {
  const sums = { slices: 0, urls: 0, asks: 0, empty: 0, serverMs: 0, ownMs: 0, wallMs: 0 };
  const tookMs: number[] = [];
  for (const asks of rounds) {
    const waiting = [...asks];
    const before = processorTime(world.server);
    const beganMs = performance.now();
    const lane = async () => {
      for (let ask = waiting.shift(); ask !== undefined; ask = waiting.shift()) {
        const { crawler, ...request } = ask;
        const askedMs = performance.now();
        const leases = await world.frontier.leaseHosts({
          ...request,
          crawlerId: asCrawlerId(crawler),
          leaseSeconds: 300,
          addressRestSeconds: 0,
          now: new Date(),
        });
        tookMs.push(performance.now() - askedMs);
        sums.asks += 1;
        sums.slices += leases.length;
        sums.empty += leases.length === 0 ? 1 : 0;
        for (const { urls } of leases) sums.urls += urls.length;
      }
    };
    await Promise.all(Array.from({ length: options.atOnce }, lane));
    sums.wallMs += performance.now() - beganMs;
    const after = processorTime(world.server);
    sums.serverMs += after.serverMs - before.serverMs;
    sums.ownMs += after.ownMs - before.ownMs;
    if (options.finish) await finishLeases(world.pool);
  }
  return { ...sums, tookMs };
}

export interface Turns {
  readonly crawlers: number;
  /** Requests of each crawler, one after the other. */
  readonly asks: number;
  readonly hosts: number;
  readonly order?: FrontierOrder;
}

/** Every crawler asks, gives back at once what it got, and asks again: what handing out costs, with nothing fetched. */
export async function measureTurns(
  world: LeaseWorld,
  { crawlers, asks, hosts, order }: Turns,
): Promise<LeaseTimes> {
  const sums = { slices: 0, urls: 0, asks: 0, empty: 0 };
  const tookMs: number[] = [];
  const lane = async (crawler: number) => {
    const crawlerId = asCrawlerId(crawler);
    const request = { crawlerId, hosts, urlsPerHost: 20, leaseSeconds: 300, addressRestSeconds: 10 };
    for (let ask = 0; ask < asks; ask++) {
      const askedMs = performance.now();
      const leases = await world.frontier.leaseHosts({
        ...request,
        ...(order ? { order } : {}),
        now: new Date(),
      });
      tookMs.push(performance.now() - askedMs);
      sums.asks += 1;
      sums.slices += leases.length;
      sums.empty += leases.length === 0 ? 1 : 0;
      for (const { urls } of leases) sums.urls += urls.length;
      await Promise.all(
        leases.map(async ({ leaseId }) =>
          world.frontier.returnLease({ leaseId: asLeaseId(leaseId), crawlerId }, new Date()),
        ),
      );
    }
  };
  const before = processorTime(world.server);
  const beganMs = performance.now();
  await Promise.all(Array.from({ length: crawlers }, async (_, index) => lane(index + 1)));
  const wallMs = performance.now() - beganMs;
  const after = processorTime(world.server);
  return {
    ...sums,
    serverMs: after.serverMs - before.serverMs,
    ownMs: after.ownMs - before.ownMs,
    tookMs,
    wallMs,
  };
}

/** As results do it, without pages: what was leased is due again in a week. */
async function finishLeases(pool: Pool): Promise<void> {
  await pool.query(
    `update frontier_url u
     set next_fetch_at = now() + interval '7 days', last_fetched_at = now()
     from lease l, unnest(l.open_url_hashes) as one (url_hash)
     where l.closed_at is null and u.host_hash = l.host_hash and u.url_hash = one.url_hash`,
  );
  await pool.query(
    `with closed as (
       update lease set closed_at = now(), ending = 'done', open_url_hashes = '{}' where closed_at is null returning host_hash
     )
     update frontier_host h
     set lease_id = null, due_at = (select min(next_fetch_at) from frontier_url u where u.host_hash = h.host_hash and u.state = 'due')
     from closed where h.host_hash = closed.host_hash`,
  );
  await pool.query("update address_turn set leases = 0");
}
