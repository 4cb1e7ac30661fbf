/**
 * A frontier of any size, made in the database: hosts with as many pages as hosts have on the web (a power law: four in
 * ten have one, one in ten has more than twenty, the largest a thousand), whose URLs came in as pages name them, in
 * bunches of twenty at most that lie all over the table. The indexes grow with it, as they do while a crawl runs.
 */
import type { Pool } from "pg";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";

export const crawlers = 12;
export const subnets = 10_000;
/** The most URLs of a host, and of a bunch. */
const mostPages = 1000;
const bunch = 20;
/** Exponent of the power law; the mean is then about 19 URLs a host. */
const steepness = 0.75;
const hostsPerMillion = 51_500;

/** Crawlers, subnets and delegations; each crawler has a twelfth of the subnets. */
export async function seedFleet(pool: Pool): Promise<void> {
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const store = createCrawlerStore(pool);
  for (let n = 1; n <= crawlers; n++) await store.register({ name: `c${n}`, keyHash: `k${n}` });
  await pool.query(
    `insert into subnet (first_address, last_address, registry, added_in)
     select '16.0.0.0'::inet + n * 256, '16.0.0.0'::inet + n * 256 + 255, 'arin', 1
     from generate_series(0, $1::int - 1) n`,
    [subnets],
  );
  await pool.query(
    `insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
     select s.subnet_id, 1 + s.subnet_id % $1, 'own-subnet', true, now()
     from subnet s`,
    [crawlers],
  );
  await pool.query("analyze crawler, subnet, delegation");
}

/**
 * So many millions, after those that are there. The first grows with its indexes, as while a crawl runs; more are loaded
 * without, and then indexed with pages as full as those that grew (seven tenths), which takes a third of the time.
 */
export async function seedMillions(pool: Pool, from: number, to: number): Promise<void> {
  const { rows } = await pool.query<{ name: string; definition: string; is_key: boolean }>(
    `select c.relname as name, pg_get_indexdef(c.oid) as definition, i.indisprimary as is_key
     from pg_index i join pg_class c on c.oid = i.indexrelid
     where i.indrelid = 'frontier_url'::regclass`,
  );
  const bulk = from > 0;
  if (bulk) await pool.query("alter table frontier_url drop constraint frontier_url_pkey");
  for (const { name, is_key } of bulk ? rows : []) if (!is_key) await pool.query(`drop index ${name}`);
  for (let part = from; part < to; part++) await seedMillion(pool, part);
  if (!bulk) return;
  await pool.query("set maintenance_work_mem = '512MB'");
  await pool.query("alter table frontier_url add primary key (host_hash, url_hash) with (fillfactor = 70)");
  for (const { definition, is_key } of rows) {
    const whole = definition
      .replace(" ON ONLY ", " ON ")
      .replace(/ WITH \([^)]*\)/, "")
      .replace(/( WHERE .*)?$/, " WITH (fillfactor = 70)$1");
    if (!is_key) await pool.query(whole);
  }
}

/**
 * Another million URLs, more or less; `part` counts them, from 0. All are due; hosts with a whole slice of twenty URLs
 * are due longest, so that leases are of whole slices. A host has the hash
 * of its name (core/url-key); that of a URL is any, since nothing here needs it.
 */
async function seedMillion(pool: Pool, part: number): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query(
      `create temporary table made as
       select n, host, ('x' || encode(substr(sha256(host::bytea), 1, 8), 'hex'))::bit(64)::bigint as host_hash,
         least(${mostPages}, floor((1 - random()) ^ (-1 / ${steepness})))::int as pages
       from (
         select n, 'www.' || substr(md5(n::text), 1, 3 + n % 9) || n || '.example' as host
         from generate_series(1 + $1::int * ${hostsPerMillion}, ($1::int + 1) * ${hostsPerMillion}) n
       ) named`,
      [part],
    );
    await client.query(
      `insert into frontier_host (host_hash, host, state, addresses, subnet_id, due_at, url_count, resolve_at)
       select host_hash, host, 'resolved', array['16.0.0.0'::inet + n], 1 + floor(random() ^ 2 * ${subnets})::int,
         now() - make_interval(hours => case when pages >= ${bunch} then 48 else 24 end) + n * interval '1 ms', pages,
         now() + interval '1 day'
       from made`,
    );
    await client.query(
      `insert into frontier_url (host_hash, url_hash, url, depth, back_links, discovered_at, next_fetch_at)
       select host_hash, hashtextextended(url, 1), url, 2, 1, found_at, found_at
       from (
         select b.host_hash, b.found_at, 'https://' || b.host || '/'
           || substr(b.path, 1, 6 + page * 7 % 60) || page as url
         from (
           select *, now() - random() * interval '30 days' as found_at, md5(n::text) || '/' || md5(host) as path
           from made, generate_series(0, (pages - 1) / ${bunch}) part
           order by random()
         ) b, generate_series(b.part * ${bunch}, least(b.pages, (b.part + 1) * ${bunch}) - 1) page
       ) u
       ${part === 0 ? "on conflict do nothing" : ""}`,
    );
    await client.query("drop table made");
  } finally {
    client.release();
  }
}
