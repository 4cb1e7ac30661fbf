/**
 * Table held_urls: URLs over their hosts' budgets, many of a host in one row. Most new URLs are held, and single rows of
 * frontier_url would dominate the cost of storing a page. They change under the lock of their host's row, and a URL is in
 * only one of the two tables.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { UrlAddress } from "#core/url-key";
import { listOf, prepared } from "../../database/transaction.ts";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import { hostBudgetSql } from "./budgets.ts";
import { deepest, linksIn, type NewUrl } from "./place-urls.ts";

/** Maximum URLs per row. The whole row is read to find one of them. */
const mostUrls = 64;
const mostChars = 16_384;

export const isHeldUrl = (hostHash: string, urlHash: string): string => `exists (
  select from held_urls b
  where b.host_hash = ${hostHash} and ${urlHash} = any (b.url_hashes[b.released + 1:]))`;

interface Row {
  readonly urls: NewUrl[];
  chars: number;
}

/** The URLs must be neither held nor in the frontier yet. */
export async function writeHeld(client: PoolClient, urls: readonly NewUrl[], now: Date): Promise<void> {
  if (urls.length === 0) return;
  const rows = rowsOf(urls);
  const first = rows.map(({ urls: [one] }) => one!.url);
  await prepared(
    client,
    `insert into held_urls (host_hash, held_at, depth, redirects, lists, url_hashes, links, urls)
     select host_hash, $8, depth, redirects, lists, url_hashes::bigint[], links::int[], urls
     from unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::text[], $6::text[], $7::text[])
       as given (host_hash, depth, redirects, lists, url_hashes, links, urls)`,
    [
      listOf(first.map(({ key }) => key.hostHash)),
      listOf(first.map(({ depth }) => Math.min(deepest, depth))),
      listOf(first.map(({ redirects = 0 }) => redirects)),
      listOf(first.map(({ lists = 0 }) => lists)),
      rows.map((row) => listOf(row.urls.map(({ url }) => url.key.urlHash))),
      rows.map((row) => listOf(row.urls.map(({ links }) => linksIn(links)))),
      rows.map((row) => row.urls.map(({ url }) => url.key.url).join("\n")),
      now,
    ],
  );
}

/** Groups URLs of one host, depth and way of being found into rows. The input is sorted by host, then by depth. */
function rowsOf(urls: readonly NewUrl[]): Row[] {
  const rows: Row[] = [];
  for (const one of urls) {
    const row = rows.at(-1);
    const hasRoom = row !== undefined && row.urls.length < mostUrls && row.chars < mostChars;
    if (hasRoom && areAlike(row.urls[0]!.url, one.url)) {
      row.urls.push(one);
      row.chars += one.url.key.url.length;
    } else rows.push({ urls: [one], chars: one.url.key.url.length });
  }
  return rows;
}

const areAlike = (a: AdmittedUrl, b: AdmittedUrl): boolean =>
  a.key.hostHash === b.key.hostHash &&
  a.depth === b.depth &&
  (a.redirects ?? 0) === (b.redirects ?? 0) &&
  (a.lists ?? 0) === (b.lists ?? 0);

export async function heldAmong(
  client: PoolClient,
  urls: readonly AdmittedUrl[],
): Promise<ReadonlySet<AdmittedUrl>> {
  if (urls.length === 0) return new Set();
  const hosts = urls.map(({ key }) => key.hostHash);
  const { rows } = await prepared<{ held: number[] }>(
    client,
    `select coalesce(array_agg(ordinal::int), '{}') as held
     from (
       select host_hash, unnest(url_hashes[released + 1:]) as url_hash
       from held_urls
       where host_hash = any($3::bigint[])
     ) held
     join unnest($1::bigint[], $2::bigint[]) with ordinality as given (host_hash, url_hash, ordinal)
       using (host_hash, url_hash)`,
    [listOf(hosts), listOf(urls.map(({ key }) => key.urlHash)), listOf(new Set(hosts))],
  );
  return new Set(rows[0]!.held.map((ordinal) => urls[ordinal - 1]!));
}

export interface HeldUrl {
  readonly host_hash: HostHash;
  readonly url: string;
  readonly depth: number;
  readonly redirects: number;
  readonly lists: number;
  readonly back_links: number;
  readonly discovered_at: Date;
}

const columns = "u.host_hash, u.url, u.depth, u.redirects, u.lists, u.back_links, u.discovered_at";

/** Rows of 64 URLs each. After a limit is raised, the URLs that do not fit follow later. */
const mostRowsAtOnce = 200;

/** Removes and returns URLs for which the locked hosts now have room, shallowest first, then oldest. */
export async function takeWithinBudget(
  client: PoolClient,
  hosts: readonly HostHash[],
  pagesPerHost: number,
): Promise<HeldUrl[]> {
  const { rows } = await prepared<HeldUrl>(
    client,
    `with room as materialized (
       select h.host_hash, ${hostBudgetSql("h", "$2::int")} - h.url_count as urls
       from frontier_host h
       where h.host_hash = any($1::bigint[])
         and h.held_urls > 0
         and h.state <> 'refused'
         and h.url_count < ${hostBudgetSql("h", "$2::int")}
     ), opened as materialized (
       select host_hash, batch, released + least(waiting, room - upto + waiting) as released, upto <= room as is_empty
       from (
         select b.host_hash, b.batch, b.depth, b.released, cardinality(b.url_hashes) - b.released as waiting,
           room.urls as room,
           sum(cardinality(b.url_hashes) - b.released) over (partition by b.host_hash order by b.depth, b.batch) as upto
         from room
         join held_urls b using (host_hash)
       ) waiting
       where upto - waiting < room
       order by host_hash, depth, batch
       limit ${mostRowsAtOnce}
     ), emptied as (
       delete from held_urls b using opened o
       where b.host_hash = o.host_hash and b.batch = o.batch and o.is_empty
     ), begun as (
       update held_urls b set released = o.released from opened o
       where b.host_hash = o.host_hash and b.batch = o.batch and not o.is_empty
     )
     select ${columns}
     from opened o
     join held_url u on u.host_hash = o.host_hash and u.batch = o.batch and u.place <= o.released
     order by u.host_hash, u.depth, u.batch, u.place`,
    [listOf(hosts), pagesPerHost],
  );
  return rows;
}

/** Removes and returns the named held URLs, except those of refused hosts. Hosts must be locked. */
export async function takeNamed(client: PoolClient, keys: readonly UrlAddress[]): Promise<HeldUrl[]> {
  const { rows } = await client.query<HeldUrl>(
    `with given as materialized (
       select distinct * from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     ), opened as materialized (
       select distinct b.host_hash, b.batch
       from given
       join frontier_host h on h.host_hash = given.host_hash and h.held_urls > 0 and h.state <> 'refused'
       join held_urls b on b.host_hash = given.host_hash and given.url_hash = any (b.url_hashes)
     ), held as materialized (
       select u.*, given.url_hash is not null as is_named
       from opened
       join held_url u using (host_hash, batch)
       left join given using (host_hash, url_hash)
     ), changed as materialized (
       select host_hash, batch,
         array_agg(url_hash order by place) filter (where not is_named) as url_hashes,
         array_agg(back_links order by place) filter (where not is_named) as links,
         string_agg(url, e'\n' order by place) filter (where not is_named) as urls
       from held
       group by host_hash, batch
       having bool_or(is_named)
     ), emptied as (
       delete from held_urls b using changed c
       where b.host_hash = c.host_hash and b.batch = c.batch and c.url_hashes is null
     ), shortened as (
       update held_urls b set released = 0, url_hashes = c.url_hashes, links = c.links, urls = c.urls from changed c
       where b.host_hash = c.host_hash and b.batch = c.batch and c.url_hashes is not null
     )
     select ${columns}
     from held u
     where is_named
     order by u.host_hash, u.depth, u.batch, u.place`,
    [keys.map(({ hostHash }) => hostHash), keys.map(({ urlHash }) => urlHash)],
  );
  return rows;
}
