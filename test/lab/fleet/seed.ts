/** The database of the box, filled in bulk: what `nearcrawl fleet invite`, an import of registries and past rounds leave. */
import type { Pool } from "pg";
import { hashCrawlerKey } from "#coordinator/web/secrets";
import { addressText, blockBytes, crawlerBlock, folderOf, publicKeyOf, targetBlock } from "./world.ts";

export interface SeedSettings {
  readonly crawlers: number;
  /** Subnets that each crawler has beside its own. */
  readonly subnetsPerCrawler: number;
  /** Subnets that nobody has, for probe rounds. */
  readonly freeSubnets: number;
}

export async function seed(pool: Pool, settings: SeedSettings): Promise<void> {
  const { crawlers, subnetsPerCrawler, freeSubnets } = settings;
  const delegated = crawlers * subnetsPerCrawler;
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  await addSubnets(pool, crawlerBlock(0), crawlers);
  await addSubnets(pool, targetBlock(0), delegated + freeSubnets);
  const numbers = Array.from({ length: crawlers }, (_, at) => at);
  const folders = numbers.map(folderOf);
  await pool.query(
    `with added as (
       insert into crawler (name, public_key)
       select name, public_key
       from unnest($1::text[], $2::text[]) with ordinality as given (name, public_key, number)
       order by number
       returning crawler_id, name
     )
     insert into crawler_key (crawler_id, key_hash, kept_at)
     select crawler_id, key_hash, now()
     from added
     join unnest($1::text[], $3::text[]) as given (name, key_hash) using (name)`,
    [
      folders.map(({ name }) => name),
      numbers.map(publicKeyOf),
      folders.map(({ key }) => hashCrawlerKey(key)),
    ],
  );
  // Targets number 0 to k - 1 are the first crawler's, and so on.
  await pool.query(
    `insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
     select s.subnet_id, c.crawler_id, 'probe-round', true, 10, now()
     from generate_series(0, $1::int - 1) target
     join crawler c on c.name = 'crawler-' || target / $2::int
     join subnet s on s.first_address = $3::inet + target::bigint * ${blockBytes}
       and s.last_address = $3::inet + target::bigint * ${blockBytes} + ${blockBytes - 1}`,
    [delegated, Math.max(1, subnetsPerCrawler), addressText(targetBlock(0))],
  );
  for (const table of ["subnet", "crawler", "crawler_key", "delegation"])
    await pool.query(`vacuum analyze ${table}`);
}

async function addSubnets(pool: Pool, from: number, count: number): Promise<void> {
  await pool.query(
    `insert into subnet (first_address, last_address, registry, added_in)
     select $1::inet + i::bigint * ${blockBytes}, $1::inet + i::bigint * ${blockBytes} + ${blockBytes - 1}, 'arin',
       (select max(generation) from registry_generation)
     from generate_series(0, $2::int - 1) i`,
    [addressText(from), count],
  );
}

interface WorkSettings {
  /** Sets the hosts of one step apart from those of another. */
  readonly name: string;
  readonly hosts: number;
  readonly urlsPerHost: number;
  /** The number of the first target, and of how many targets the hosts are spread over, so many apart. */
  readonly firstTarget: number;
  readonly targets: number;
  readonly apart: number;
}

/** Hosts that are resolved and due now, each at an address of its own; returns how many. */
export async function addWork(pool: Pool, work: WorkSettings): Promise<number> {
  const { name, urlsPerHost, firstTarget, targets, apart } = work;
  const hosts = Math.min(work.hosts, targets * (blockBytes - 2));
  await pool.query(
    `with named as (
       select $1 || '-' || n || '.fleet.example' as host, 1 + n / $4::int as within,
         $2::inet + ($3::bigint + n % $4::int * $5::bigint) * ${blockBytes} as block
       from generate_series(0, $6::int - 1) n
     ), added as (
       insert into frontier_host (host_hash, host, state, addresses, subnet_id, resolve_at, due_at, url_count)
       select ${hashOf("host")}, host, 'resolved', array[block + within], subnet_id, now() + interval '1 year', now(), $7
       from named
       join subnet on first_address = block and last_address = block + ${blockBytes - 1}
       returning host_hash, host
     )
     insert into frontier_url (host_hash, url_hash, url, next_fetch_at)
     select host_hash, ${hashOf("url")}, url, now()
     from added
     cross join generate_series(1, $7::int) page
     cross join lateral (select 'http://' || host || '/' || page as url) named`,
    [name, addressText(targetBlock(0)), firstTarget, targets, apart, hosts, urlsPerHost],
  );
  // As autovacuum would have it after a while; without, the planner takes the tables for empty.
  await pool.query("analyze frontier_host, frontier_url");
  return hosts;
}

/** What is due of a step and in nobody's hands is not due any more. */
export async function putOff(pool: Pool, name: string): Promise<void> {
  await pool.query(
    `with chosen as (
       select host_hash
       from frontier_host
       where host like $1 || '-%' and lease_id is null and due_at is not null
       for update skip locked
     ), urls as (
       update frontier_url u
       set next_fetch_at = now() + interval '1 year'
       from chosen c
       where u.host_hash = c.host_hash and u.state = 'due'
     )
     update frontier_host h
     set due_at = now() + interval '1 year'
     from chosen c
     where h.host_hash = c.host_hash`,
    [name],
  );
}

/** As core/url-key has it. */
function hashOf(column: string): string {
  return `('x' || encode(substr(sha256(convert_to(${column}, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint`;
}
