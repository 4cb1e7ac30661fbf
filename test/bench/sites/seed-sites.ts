/** A frontier of a million hosts as they lie on the web: few crawlers and countries have most of them, few hosts most pages. */
import type { Pool } from "pg";

export const madeSites =
  "Made: 100 crawlers, 20,000 holders, 30 countries, 25 languages and 300 TLDs by power laws, 50,000 subnets; of the hosts 8 % are unresolved, 6 % blocked, 3 % left out and 25 % due, pages by a power law; 400 open leases. 20,000 of the hosts are in the frontier, too, with a URL each and fetches of three weeks for a fifth of them; the others are rows of the list alone.";

/** Of the hosts those that the crawl's own tables have: what the job is measured by. */
export const crawledHosts = 20_000;

/** What the job reads: registry, delegations, and a frontier of a few thousand hosts. Nothing where it was made before. */
export async function seedFrontier(pool: Pool): Promise<void> {
  const { rows } = await pool.query("select from frontier_host limit 1");
  if (rows.length > 0) return;
  for (const statement of [
    fleet,
    holders,
    subnetsSql,
    delegations,
    hostsSql,
    urls,
    fetches,
    channels,
    leases,
  ])
    await pool.query(statement);
  // The list is filled by its job's round.
  await pool.query("truncate site_touch");
  await pool.query("vacuum analyze");
}

/** The other rows of the list, made by themselves: a job of an hour is not what is measured by them. */
export async function seedList(pool: Pool, hosts: number): Promise<void> {
  const { rows } = await pool.query<{ rows: number }>("select count(*)::int as rows from site");
  if (rows[0]!.rows >= hosts * 0.99) return;
  const { rows: indexes } = await pool.query<{ name: string; definition: string }>(
    "select indexname as name, indexdef as definition from pg_indexes where schemaname = current_schema() and tablename = 'site'",
  );
  await pool.query("alter table site drop constraint site_pkey");
  for (const { name } of indexes) if (name !== "site_pkey") await pool.query(`drop index ${name}`);
  await pool.query(listSql, [crawledHosts, hosts - 1]);
  await pool.query("set maintenance_work_mem = '256MB'");
  await pool.query("alter table site add primary key (host_hash)");
  for (const { name, definition } of indexes) if (name !== "site_pkey") await pool.query(definition);
  await pool.query("vacuum analyze site");
}

const fleet = `
  with generation as (insert into registry_generation (state, applied_at) values ('applied', now()))
  insert into crawler (name) select 'crawler-' || n from generate_series(1, 100) n`;

const holders = `
  insert into holder (holder_key, name) select 'name:' || n, 'Holder ' || n from generate_series(1, 20000) n`;

const subnetsSql = `
  insert into subnet (first_address, last_address, holder_id, country, registry, added_in)
  select '11.0.0.0'::inet + n * 64, '11.0.0.0'::inet + n * 64 + 63, 1 + floor(20000 * random() ^ 3)::int,
    (array['US','DE','FR','GB','NL','JP','CA','IT','ES','PL','BR','AU','SE','CH','AT','CZ','DK','FI','GR','RO','HU','NO','BE',
      'PT','IE','TR','UA','KR','IN','CY'])[1 + floor(30 * random() ^ 2)::int],
    'ripencc', 1
  from generate_series(0, 49999) n`;

const delegations = `
  insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
  select subnet_id, 1 + floor(100 * random() ^ 2)::int, 'probe-round', true, 0.5 + 300 * random() ^ 4, now() - random() * interval '90 days'
  from subnet
  where random() < 0.97`;

const hostsSql = `
  insert into frontier_host (host_hash, host, state, addresses, subnet_id, admitted_at, url_count, due_at, fetched_urls, fetches,
    fetched_bytes, robots_state, good_pages, near_duplicates, opt_out_id, language, resolve_at)
  select ('x' || encode(substr(sha256(host::bytea), 1, 8), 'hex'))::bit(64)::bigint, host,
    case when kind < 0.08 then 'unresolved' when kind < 0.10 then 'refused' else 'resolved' end,
    array['11.0.0.0'::inet + n], case when kind >= 0.10 then 1 + floor(random() * 50000)::int end,
    now() - age * interval '200 days', pages + 3,
    case when kind < 0.10 or kind between 0.14 and 0.17 then null
      when kind < 0.42 then now() - random() * interval '2 days' else now() + random() * interval '20 days' end,
    pages, pages, pages * 21000::bigint, case when kind between 0.10 and 0.12 then 'closed' else 'rules' end,
    pages, pages / 9, case when kind between 0.12 and 0.14 then 1 end,
    case when kind >= 0.14 and random() < 0.8 then (array['en','de','fr','en','nl','ja','en','it','es','pl','pt','en','sv','de',
      'de','cs','da','fi','el','ro','hu','no','nl','pt','tr'])[1 + floor(25 * random() ^ 2)::int] end,
    now() + interval '1 day'
  from (
    select n, (array['www.','www.','shop.','','news.','m.'])[1 + n % 6] || substr(md5(n::text), 1, 2 + n % 9) || '.example-' || n / 7
        || '.' || tld as host,
      kind, age, case when kind < 0.14 then 0 else least(20000, floor((1 - random()) ^ (-1 / 0.8)))::int end as pages
    from (
      select n, random() as kind, random() ^ 2 as age, case when n % 3 = 0 then 'com' when n % 9 = 1 then 'de' when n % 31 = 2 then 'gr'
        else 't' || floor(300 * random() ^ 3)::int || 'x' end as tld
      from generate_series(0, ${crawledHosts - 1}) n
    ) drawn
  ) made
  on conflict do nothing`;

const urls = `
  insert into frontier_url (host_hash, url_hash, url, next_fetch_at)
  select host_hash, host_hash, 'https://' || host || '/', coalesce(due_at, now() + interval '30 days')
  from frontier_host`;

const fetches = `
  insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, blame, total_ms, wire_bytes, body_bytes, shipped_bytes)
  select host_hash, host_hash, 1, now() - random() * interval '20 days', 'fetched', case when random() < 0.1 then 'target' end, 9, 9, 9, 9
  from frontier_host, generate_series(1, 3)
  where fetches > 0 and host_hash % 5 = 0`;

const channels = `
  insert into channel (host_hash, host, directories, created_at)
  select host_hash, host, '{/}', now() from frontier_host where good_pages > 0 limit 500`;

const leases = `
  insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls)
  select 1, host_hash, host, now(), now() + interval '1 hour', 20, 9 from frontier_host where due_at < now() limit 400`;

const listSql = `
  insert into site (host_hash, host, standing, due_at, subnet_id, crawler_id, holder_id, country, language, tld, channels, pages,
    urls, due_urls, counted_day, failed_days, fetched_days, failures, fetches, fetched_at, added_at, rtt_ms, bytes)
  select ('x' || encode(substr(sha256(host::bytea), 1, 8), 'hex'))::bit(64)::bigint, host, standing,
    case when standing = 'ready' then case when kind < 0.42 then now() - kind * interval '2 days' else now() + kind * interval '20 days' end end,
    s.subnet_id, d.crawler_id, s.holder_id, s.country,
    case when pages > 0 and n % 5 > 0 then (array['en','de','fr','en','nl','ja','en','it','es','pl','pt','en','sv','de',
      'de','cs','da','fi','el','ro','hu','no','nl','pt','tr'])[1 + floor(25 * random() ^ 2)::int] end,
    tld, case when n % 2000 = 0 then 1 else 0 end, pages, pages + 3, case when standing = 'ready' and kind < 0.42 then 1 + pages / 4 else 0 end,
    9826, array[failed, 0, 0, 0, 0, 0, 0], array[pages, 0, 0, 0, 0, 0, 0], failed, pages,
    case when pages > 0 then now() - age * interval '60 days' end, now() - interval '60 days' - age * interval '200 days', d.rtt_ms,
    pages * 21000::bigint
  from (
    select *, case when kind < 0.08 then 'unresolved' when kind < 0.10 then 'address' when kind < 0.12 then 'robots'
        when kind < 0.14 then 'opted-out' when kind < 0.17 then 'nothing-due' else 'ready' end as standing,
      case when pages > 0 and n % 4 = 0 then floor(pages * random() ^ 4)::int else 0 end as failed
    from (
      select *, (array['www.','www.','shop.','','news.','m.'])[1 + n % 6] || substr(md5(n::text), 1, 2 + n % 9) || '.example-' || n / 7
          || '.' || tld as host,
        case when kind < 0.14 then 0 else least(20000, floor((1 - random()) ^ (-1 / 0.8)))::int end as pages
      from (
        select n, random() as kind, random() ^ 2 as age, 1 + floor(random() * 50000)::int as subnet_id,
          case when n % 3 = 0 then 'com' when n % 9 = 1 then 'de' when n % 31 = 2 then 'gr'
            else 't' || floor(300 * random() ^ 3)::int || 'x' end as tld
        from generate_series($1::int, $2::int) n
      ) drawn
    ) named
  ) made
  left join subnet s on s.subnet_id = made.subnet_id and made.standing not in ('unresolved', 'address')
  left join delegation d on d.subnet_id = s.subnet_id`;
