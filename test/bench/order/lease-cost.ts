/** What each order costs a lease: 20 slices of 20 URLs, of hosts with few due URLs and with as many as are looked at. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { type OrderName, orderNames } from "#coordinator/frontier/order/strategies";
import { asCrawlerId } from "#core/ids";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { seedFleet } from "../registry/seed-frontier.ts";

export interface LeaseCost {
  readonly urlsPerHost: number;
  readonly order: OrderName;
  /** Of one call that leases 20 slices: the median of the rounds. */
  readonly medianMs: number;
}

const hosts = 20;
const rounds = 9;

export async function measureLeaseCost(): Promise<LeaseCost[]> {
  const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
  const open = { databaseUrl: process.env.DATABASE_URL ?? null, home, schema: `bench_${process.pid}` };
  const database = await openDatabase(open);
  try {
    await migrate(database);
    await seedFleet(database.pool);
    const costs: LeaseCost[] = [];
    for (const urlsPerHost of [20, 2000]) {
      await seedHosts(database.pool, urlsPerHost);
      costs.push(...(await costsOf(database.pool, urlsPerHost)));
    }
    return costs;
  } finally {
    await database.pool.query(`drop schema "${database.schema}" cascade`);
    await database.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** Of crawler 1, half of their URLs visited, all due. */
async function seedHosts(pool: Pool, urlsPerHost: number): Promise<void> {
  await pool.query("truncate frontier_host, frontier_url, url_rank, lease");
  await pool.query(
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, due_at, url_count)
     select n, 'h' || n || '.example', 'resolved', array['16.0.0.1'::inet + n * 256 * 12],
       (select subnet_id from delegation where crawler_id = 1 order by subnet_id offset n limit 1), now() - interval '1 day', $2
     from generate_series(1, $1) n`,
    [hosts, urlsPerHost],
  );
  await pool.query(
    `insert into frontier_url (host_hash, url_hash, url, back_links, next_fetch_at, last_fetched_at, out_links,
       change_ratio, changes_per_day)
     select h, u, 'http://h' || h || '.example/' || u, u % 97, now() - make_interval(secs => 3600 + u),
       case when u % 2 = 0 then now() - interval '9 days' end, u % 50, (u % 10) / 10.0, (u % 30) / 10.0
     from generate_series(1, $1) h, generate_series(1, $2) u`,
    [hosts, urlsPerHost],
  );
  await pool.query(
    "insert into url_rank (host_hash, url_hash, page_rank, ranked_at) select host_hash, url_hash, 1.0 / url_hash, now() from frontier_url",
  );
  await pool.query("analyze frontier_url, frontier_host, url_rank");
}

/** In turn, so that a busy moment meets all of them; the first round makes plans and fills caches. */
async function costsOf(pool: Pool, urlsPerHost: number): Promise<LeaseCost[]> {
  const frontier = createFrontierStore(pool);
  const taken = new Map<OrderName, number[]>(orderNames.map((name) => [name, []]));
  const crawlerId = asCrawlerId(1);
  for (let round = 0; round <= rounds; round++) {
    for (const name of orderNames) {
      const request = { crawlerId, hosts, urlsPerHost: 20, leaseSeconds: 300, addressRestSeconds: 0 };
      const startedMs = performance.now();
      const leases = await frontier.leaseHosts({
        ...request,
        order: { name, newShare: 0.9, worthShare: 0.75 },
        now: new Date(),
      });
      if (round > 0) taken.get(name)!.push(performance.now() - startedMs);
      if (leases.length !== hosts) throw new Error(`${leases.length} slices were leased, not ${hosts}`);
      await frontier.returnLeasesOf(crawlerId, new Date());
    }
  }
  return orderNames.map((order) => {
    const sorted = taken.get(order)!.sort((a, b) => a - b);
    return { urlsPerHost, order, medianMs: sorted[Math.floor(sorted.length / 2)]! };
  });
}
