/**
 * Invariants of a coordinator's tables that hold whatever was killed at any moment; each check returns the rows that violate it.
 * They apply to a fleet at rest, with no open lease and everything acknowledged written.
 */
import type { Pool } from "pg";

export interface DatabaseCheck {
  /** Kebab-case. */
  readonly name: string;
  readonly words: string;
  /** Returns a row for each violation. */
  readonly sql: string;
}

export interface Contradiction {
  readonly check: string;
  readonly words: string;
  readonly rows: readonly object[];
}

const mostRows = 20;

/** The violated checks, each with its first rows. */
export async function contradictionsIn(
  pool: Pick<Pool, "query">,
  checks: readonly DatabaseCheck[] = databaseChecks,
): Promise<readonly Contradiction[]> {
  const found: Contradiction[] = [];
  for (const { name, words, sql } of checks) {
    const { rows } = await pool.query<object>(`select * from (${sql}) contradicted limit ${mostRows}`);
    if (rows.length > 0) found.push({ check: name, words, rows });
  }
  return found;
}

/** Columns of frontier_host, by what they count of a host's URLs. */
const worthColumns = {
  good: "good_pages",
  "near-duplicate": "near_duplicates",
  "not-found": "not_found_pages",
  empty: "empty_pages",
  failed: "failed_urls",
} as const;

/** Holds only for crawls younger than retention.fetchDays. */
export const databaseChecks: readonly DatabaseCheck[] = [
  {
    name: "results-of-leases",
    words: "a lease has as many fetches as URLs that left it, each URL once",
    sql: `
      select l.lease_id, l.host, l.crawler_id, l.granted_at, l.closed_at, l.ending, l.url_count - l.open_urls as taken,
        f.fetches, f.urls
      from lease l
      cross join lateral (
        select count(*)::int as fetches, count(distinct url_hash)::int as urls
        from page_fetch f
        where f.host_hash = l.host_hash and f.crawler_id = l.crawler_id and f.fetched_at >= l.granted_at
          and f.fetched_at <= coalesce(l.closed_at, 'infinity')
          -- Of two leases that touch, the later one has what was fetched in that millisecond.
          and not exists (
            select from lease later
            where later.host_hash = l.host_hash and later.crawler_id = l.crawler_id and not later.is_check
              and later.lease_id > l.lease_id and later.granted_at <= f.fetched_at
          )
      ) f
      where not l.is_check and (f.fetches <> l.url_count - l.open_urls or f.urls <> f.fetches)`,
  },
  {
    name: "fetches-without-lease",
    words: "every fetch that is stored belongs to a lease of its crawler",
    sql: `
      select f.crawler_id, f.host_hash, f.url_hash, f.fetched_at
      from page_fetch f
      where not exists (
        select from lease l
        where l.host_hash = f.host_hash and l.crawler_id = f.crawler_id and not l.is_check
          and f.fetched_at >= l.granted_at and f.fetched_at <= coalesce(l.closed_at, 'infinity')
      )`,
  },
  {
    name: "visits",
    words: "a URL has been visited as often as it was fetched",
    sql: `
      select u.url, u.visits, count(f.fetched_at)::int as fetches
      from frontier_url u
      left join page_fetch f using (host_hash, url_hash)
      group by u.host_hash, u.url_hash, u.url, u.visits
      having u.visits <> count(f.fetched_at)`,
  },
  {
    name: "acknowledged-results",
    words: "no crawler has more fetches than results that were acknowledged to it",
    sql: `
      select c.name, count(f.fetched_at)::int as fetches, s.acknowledged
      from crawler c
      left join page_fetch f using (crawler_id)
      cross join lateral (
        select coalesce(sum(acknowledged_sequence), 0)::int as acknowledged from spool where crawler_id = c.crawler_id
      ) s
      group by c.crawler_id, c.name, s.acknowledged
      having count(f.fetched_at) > s.acknowledged`,
  },
  {
    name: "urls-of-hosts",
    words: "a host counts as many URLs, visited ones and held ones, as it has",
    sql: `
      select h.host, h.url_count, u.urls, h.fetched_urls, u.visited, h.held_urls, b.held
      from frontier_host h
      cross join lateral (
        select count(*)::int as urls, count(*) filter (where visits > 0)::int as visited
        from frontier_url where host_hash = h.host_hash
      ) u
      cross join lateral (select count(*)::int as held from held_url where host_hash = h.host_hash) b
      where h.url_count <> u.urls or h.fetched_urls <> u.visited or h.held_urls <> b.held`,
  },
  {
    name: "fetches-of-hosts",
    words: "a host counts as many fetches and bytes as were stored",
    sql: `
      select h.host, h.fetches, f.fetches as stored, h.fetched_bytes, f.bytes as stored_bytes
      from frontier_host h
      cross join lateral (
        select count(*) filter (where wire_bytes > 0)::int as fetches, coalesce(sum(wire_bytes), 0)::bigint as bytes
        from page_fetch where host_hash = h.host_hash
      ) f
      where h.fetches <> f.fetches or h.fetched_bytes <> f.bytes`,
  },
  {
    name: "budgets-of-hosts",
    words: "what a host's budget is made of is what its URLs are worth",
    sql: `
      select h.host, ${Object.values(worthColumns)
        .map((column) => `h.${column}, u.${column} as ${column}_of_urls`)
        .join(", ")}
      from frontier_host h
      cross join lateral (
        select ${Object.entries(worthColumns)
          .map(([worth, column]) => `count(*) filter (where worth = '${worth}')::int as ${column}`)
          .join(", ")}
        from frontier_url where host_hash = h.host_hash
      ) u
      where ${Object.values(worthColumns)
        .map((column) => `h.${column} <> u.${column}`)
        .join(" or ")}`,
  },
  {
    name: "outside-links",
    words: "a host counts as many links from other hosts as pages have to it",
    sql: `
      select h.host, h.outside_links, coalesce(l.links, 0)::int as links
      from frontier_host h
      left join (
        select to_host_hash, count(*) as links from link where host_hash <> to_host_hash group by 1
      ) l on l.to_host_hash = h.host_hash
      where h.outside_links <> coalesce(l.links, 0)`,
  },
  {
    name: "back-links",
    words: "a URL counts as many links as pages have to it",
    sql: `
      select u.url, u.back_links, coalesce(l.links, 0)::int as links
      from frontier_url u
      left join (
        select to_host_hash, to_url_hash, count(*) as links from link group by 1, 2
      ) l on l.to_host_hash = u.host_hash and l.to_url_hash = u.url_hash
      where u.back_links <> coalesce(l.links, 0)`,
  },
  {
    name: "link-outbox",
    words: "no effect of a link waits, and no bite is open",
    sql: `
      select outbox_number::text as waiting, effects from link_outbox
      union all
      select 'bite ' || bite_number, cardinality(outbox_numbers) from link_outbox_bite where outbox_numbers <> '{}'`,
  },
  {
    name: "change-feed",
    words: "changes are numbered without gap or repeat, and none waits for its number",
    sql: `
      select f.removed_through, f.last_number, c.changes, c.numbers, c.first, c.last, i.waiting
      from change_feed f
      cross join (
        select count(*) as changes, count(distinct change_number) as numbers, min(change_number) as first,
          max(change_number) as last
        from page_change
      ) c
      cross join (select count(*) as waiting from page_change_inbox) i
      where i.waiting > 0 or c.changes <> c.numbers or c.changes <> f.last_number - f.removed_through
        or (c.changes > 0 and (c.first <> f.removed_through + 1 or c.last <> f.last_number))`,
  },
  {
    name: "changed-pages",
    words: "a change is of a URL that is known, and a page that was seen last is there",
    sql: `
      with latest as (
        select distinct on (host_hash, url_hash) host_hash, url_hash, url, kind, change_number
        from page_change
        order by host_hash, url_hash, change_number desc
      )
      select l.change_number, l.kind, l.url, u.url_hash is not null as is_known, p.url_hash is not null as has_page
      from latest l
      left join frontier_url u using (host_hash, url_hash)
      left join page p using (host_hash, url_hash)
      where u.url_hash is null
        or p.url_hash is null and l.kind in ('first-seen', 'changed', 'links-changed', 'preferences-changed', 'came-back')
        or p.url_hash is not null and l.kind = 'gone'`,
  },
  {
    name: "delegation-history",
    words: "each step of a subnet's history begins where the last ended, and the last is who has it",
    sql: `
      with steps as (
        select subnet_id, changed_at, from_crawler_id, to_crawler_id, cause,
          lag(to_crawler_id) over w as before, row_number() over w as step,
          row_number() over (partition by subnet_id order by changed_at desc, ctid desc) as step_back
        from delegation_history
        window w as (partition by subnet_id order by changed_at, ctid)
      )
      select s.subnet_id, s.changed_at, s.cause, s.before, s.from_crawler_id, s.to_crawler_id, d.crawler_id as has_it
      from steps s
      left join delegation d using (subnet_id)
      where (s.step > 1 and s.from_crawler_id is distinct from s.before)
        or (s.step_back = 1 and s.to_crawler_id is distinct from d.crawler_id)`,
  },
  {
    name: "one-delegation",
    words:
      "no address of a subnet's parts is given to two crawlers; of subnets and hosts the keys see to that",
    sql: `
      select a.subnet_id, a.first_address, a.last_address, a.crawler_id, b.first_address as other_first_address,
        b.last_address as other_last_address, b.crawler_id as other_crawler_id
      from finer_delegation a
      join finer_delegation b on b.subnet_id = a.subnet_id and b.finer_id > a.finer_id
      where a.first_address <= b.last_address and b.first_address <= a.last_address`,
  },
  {
    name: "rounds-twice",
    words: "no subnet was decided as new twice",
    sql: `
      select subnet_id, count(*)::int as rounds
      from probe_round
      where cause = 'new-subnet' and crawler_id is not null
      group by 1
      having count(*) > 1`,
  },
  {
    name: "open-leases",
    words: "nothing is under a lease, and no host or address says that it is",
    sql: `
      select 'lease ' || lease_id as what, host as of, granted_at as since from lease
      where closed_at is null and not is_check
      union all
      select 'lease of a host', host, due_at from frontier_host where lease_id is not null
      union all
      select 'turn', address::text, since from address_turn
      where leases <> (select count(*) from lease l where l.closed_at is null and address = any (l.addresses))`,
  },
  {
    name: "leases-overlap",
    words: "a host is in one lease at a time",
    sql: `
      select a.host, a.lease_id as one, a.crawler_id as by, a.granted_at, a.closed_at, b.lease_id as other,
        b.crawler_id as by_other, b.granted_at as other_granted_at
      from lease a
      join lease b on b.host_hash = a.host_hash and b.lease_id > a.lease_id and not b.is_check
      where not a.is_check and b.granted_at < coalesce(a.closed_at, 'infinity')`,
  },
  {
    name: "due-hosts",
    words: "a host is due when the first of its URLs is",
    sql: `
      select h.host, h.due_at, u.due_at as of_urls
      from frontier_host h
      cross join lateral (
        select min(next_fetch_at) as due_at from frontier_url where host_hash = h.host_hash and state = 'due'
      ) u
      where h.opt_out_id is null and h.lease_id is null and h.due_at is distinct from u.due_at`,
  },
  {
    name: "figures",
    words: "the figures of minutes and crawlers count no fetch that is not stored",
    sql: `
      select 'minutes' as figures, sum(fetches)::int as counted, (select count(*)::int from page_fetch) as stored
      from minute_figures
      having sum(fetches) > (select count(*) from page_fetch)
      union all
      select c.name, sum(q.fetches)::int, (select count(*)::int from page_fetch f where f.crawler_id = c.crawler_id)
      from crawler_figures q
      join crawler c using (crawler_id)
      group by c.crawler_id, c.name
      having sum(q.fetches) > (select count(*) from page_fetch f where f.crawler_id = c.crawler_id)`,
  },
  {
    name: "texts",
    words: "a page belongs to a URL that is known, and its digest is what the URL remembers",
    sql: `
      select p.url, p.digest, encode(u.digest, 'hex') as remembered
      from page p
      left join frontier_url u using (host_hash, url_hash)
      where u.url_hash is null or (u.digest is not null and encode(u.digest, 'hex') <> p.digest)`,
  },
  {
    name: "documents",
    words: "a page has its text, and a text its page",
    sql: `
      select host_hash, url_hash, p.url
      from page p
      full join document d using (host_hash, url_hash)
      where p.url_hash is null or d.url_hash is null`,
  },
  {
    name: "spellings",
    words: "a URL is written in its one spelling, wherever it has a key",
    sql: `
      select 'frontier' as stands_in, url from frontier_url where url like '%\\%%' and url <> canonical_escapes(url)
      union all select 'held', url from held_url where url like '%\\%%' and url <> canonical_escapes(url)
      union all select 'page', url from page where url like '%\\%%' and url <> canonical_escapes(url)
      union all select 'change', url from page_change where url like '%\\%%' and url <> canonical_escapes(url)
      union all select 'elsewhere', url from foreign_url where url like '%\\%%' and url <> canonical_escapes(url)`,
  },
  {
    name: "incidents",
    words: "no crawler did what an honest one does not do, and the coordinator did not fail",
    sql: `
      select i.kind, c.name, i.incidents::int as times, i.words
      from incident i
      left join crawler c using (crawler_id)`,
  },
];

/** Checks indexes with the extension amcheck; null when the server lacks it or forbids its creation. */
export async function damagedIndexes(pool: Pool, schema: string): Promise<readonly string[] | null> {
  try {
    await pool.query("create extension if not exists amcheck schema public");
  } catch {
    return null;
  }
  const { rows } = await pool.query<{ name: string; method: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name, a.amname as method
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     join pg_index i on i.indexrelid = c.oid
     join pg_am a on a.oid = c.relam
     where n.nspname = $1 and c.relkind = 'i' and i.indisvalid and a.amname in ('btree', 'gin')
     order by 1`,
    [schema],
  );
  const damaged: string[] = [];
  for (const { name, method } of rows) {
    const question =
      method === "btree"
        ? "select public.bt_index_check($1::regclass, true)"
        : "select public.gin_index_check($1::regclass)";
    try {
      await pool.query(question, [name]);
    } catch (error) {
      damaged.push(`${name}: ${(error as Error).message}`);
    }
  }
  return damaged;
}
