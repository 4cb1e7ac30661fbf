/**
 * What handing out work costs: leases of 20 hosts with 20 URLs each, out of 50,000 hosts that are due for twelve
 * crawlers, with every address its host's own, and with four hosts of different crawlers at each address. Run: npm
 * run bench -- leases
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";

const hosts = Number(process.argv[2] ?? 50_000);
const crawlers = 12;
const rounds = 60;
const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: `bench_${process.pid}`,
});
const { pool } = database;

try {
  await migrate(database);
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  for (let n = 0; n < crawlers; n++) {
    await createCrawlerStore(pool).register({ name: `c${n}`, keyHash: `k${n}` });
  }
  await pool.query(
    `insert into subnet (first_address, last_address, registry, added_in)
     select ('11.' || n || '.0.0')::inet, ('11.' || n || '.255.255')::inet, 'arin', 1
     from generate_series(0, ${crawlers - 1}) n`,
  );
  await pool.query(
    `insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
     select s.subnet_id, c.crawler_id, 'own-subnet', true, now()
     from subnet s join crawler c on c.crawler_id = s.subnet_id`,
  );
  for (const perAddress of [1, 4]) await report(perAddress);
} finally {
  await pool.query(`drop schema "${database.schema}" cascade`);
  await database.close();
  if (!process.env.DATABASE_URL) await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}

async function report(perAddress: number): Promise<void> {
  await pool.query("delete from lease");
  await pool.query("delete from frontier_url");
  await pool.query("delete from frontier_host");
  await pool.query(
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, due_at, url_count)
     select n, 'h' || n || '.example', 'resolved', array['12.0.0.0'::inet + n / ${perAddress}],
       1 + n % ${crawlers}, now() - make_interval(secs => n % 1000), 20
     from generate_series(1, ${hosts}) n`,
  );
  await pool.query(
    `insert into frontier_url (host_hash, url_hash, url, next_fetch_at)
     select n, page, 'http://h' || n || '.example/' || page, now() - interval '1 hour'
     from generate_series(1, ${hosts}) n, generate_series(1, 20) page`,
  );
  await pool.query("analyze frontier_host, frontier_url");
  const frontier = createFrontierStore(pool);
  const took: number[] = [];
  let leased = 0;
  for (let round = 0; round < rounds; round++) {
    const { rows } = await pool.query<{ crawler_id: number }>("select crawler_id from crawler order by 1");
    const crawlerId = rows[round % crawlers]!.crawler_id as Parameters<
      typeof frontier.leaseHosts
    >[0]["crawlerId"];
    const startMs = performance.now();
    const leases = await frontier.leaseHosts({
      crawlerId,
      hosts: 20,
      urlsPerHost: 20,
      leaseSeconds: 300,
      now: new Date(),
    });
    if (round >= crawlers) took.push(performance.now() - startMs);
    leased += leases.length;
  }
  const sorted = took.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor(part * (sorted.length - 1))]!.toFixed(1);
  console.log(
    `${perAddress} host${perAddress === 1 ? "" : "s"} an address: ${leased} leases in ${rounds} asks; an ask takes ${at(0.5)} ms (${at(0.1)} to ${at(0.9)})`,
  );
}
