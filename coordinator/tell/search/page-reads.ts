/** Reads what the index knows about one page from its own row, its URL's and its host's. */

import type { Pool } from "pg";
import { nameOf, type UrlKey } from "#core/url-key";
import { maySearch } from "#protocol/preferences";
import { linkingHosts, linksTo } from "../../crawl/batch/link-sql.ts";
import { changesOfUrl } from "../../crawl/changes/change-feed-reads.ts";
import { changeWords, type PageChange } from "../../crawl/changes/page-change.ts";
import { noText, type TextsElsewhere, textsOf } from "../../crawl/changes/page-text-reads.ts";
import type { PageReport } from "../../crawl/frontier/frontier-reports-api.ts";
import { isHeldUrl } from "../../crawl/frontier/held-url-store.ts";
import { isOptedOut } from "../../crawl/frontier/site-rule-writes.ts";
import { statedUsesOf } from "../../crawl/results/stated-uses-store.ts";
import { isoOrNull } from "../../database/cached-read.ts";
import {
  type AlikePage,
  type InLink,
  type Listed,
  linksShown,
  type NoPage,
  type OutLink,
  type PageFacts,
  type PageFetch,
  type PageKey,
  type PageOffsets,
} from "./page-facts.ts";

/** The facts in the row itself, and next to them what the other facts are made of. */
type OwnFacts = Omit<PageFacts, "alike" | "outLinks" | "inLinks" | "stated" | "changes" | "fetches">;

type Row = Omit<OwnFacts, "validators" | "robots" | "description" | "headings" | "structured" | "excerpt"> & {
  readonly noindex: boolean;
  readonly optedOut: boolean;
  readonly etag: string | null;
  readonly lastModified: string | null;
  readonly robotsState: string | null;
  readonly robotsAt: string | null;
  readonly textGroup: string | null;
  readonly firstHostHash: string | null;
  readonly firstUrlHash: string | null;
};

interface OwnPage {
  readonly facts: Omit<PageFacts, "alike" | "outLinks" | "inLinks">;
  readonly text: OwnText;
  readonly outLinks: Listed<LinkOut>;
}

interface OwnText extends PageKey {
  readonly group: string | null;
  readonly digest: string;
  /** The page that had the text first, as named in the page's row. */
  readonly firstHostHash: string | null;
  readonly firstUrlHash: string | null;
}

export async function pageOf(
  pool: Pool,
  key: PageKey,
  offsets: PageOffsets,
  elsewhere?: TextsElsewhere,
): Promise<PageFacts | NoPage> {
  const own = await ownPage(pool, key, offsets, elsewhere);
  if ("type" in own) return own;
  const most = offsets.inLinks + linksShown;
  const [alike, targets, into] = await Promise.all([
    alikePages(pool, own.text),
    targetsOf(
      pool,
      own.outLinks.items.map(({ to }) => to),
    ),
    linksInto(pool, key, most),
  ]);
  return {
    ...own.facts,
    alike: listedAlike(alike),
    outLinks: {
      ...own.outLinks,
      items: own.outLinks.items.map(({ anchor, nofollow }, at) => ({ ...targets[at]!, anchor, nofollow })),
    },
    inLinks: {
      items: into.links.slice(offsets.inLinks, most).flatMap(({ shown }) => shown ?? []),
      ...{ offset: offsets.inLinks, limit: linksShown },
      ...counted(into.count),
    },
  };
}

async function ownPage(
  pool: Pool,
  key: PageKey,
  offsets: PageOffsets,
  elsewhere: TextsElsewhere | undefined,
): Promise<OwnPage | NoPage> {
  const { rows } = await pool.query<Row>(pageSql, [key.hostHash, key.urlHash]);
  if (rows[0] === undefined) return await withoutPage(pool, key);
  const { noindex, optedOut, etag, lastModified, robotsState, robotsAt, ...row } = withIsoDates(rows[0]);
  const { textGroup: group, firstHostHash, firstUrlHash, ...facts } = row;
  if (optedOut) return { type: "opted-out" };
  const stated = await statedUsesOf(pool, key);
  if (stated !== null && !maySearch(stated.statements)) return { type: "not-searched", stated };
  if (noindex) return { type: "noindex" };
  const [texts, changes, fetches, outLinks] = await Promise.all([
    textsOf(pool, [key], elsewhere),
    changesOfUrl(pool, key, changesShown),
    fetchesOf(pool, key, { offset: offsets.fetches, limit: linksShown }),
    linksOut(pool, key, { offset: offsets.outLinks, limit: linksShown }),
  ]);
  const robots = robotsState === null || robotsAt === null ? null : { state: robotsState, at: robotsAt };
  const { description, headings, structured, text, snippetCharacters } = texts.get(nameOf(key)) ?? noText;
  const excerpt = text.slice(0, Math.min(excerptCharacters, snippetCharacters ?? excerptCharacters));
  return {
    facts: {
      ...{ ...facts, description, headings, structured, excerpt, validators: { etag, lastModified }, robots },
      ...{ stated, changes: changes.map(changeLine), fetches },
    },
    text: { ...key, group, digest: facts.digest, firstHostHash, firstUrlHash },
    outLinks,
  };
}

const changesShown = 5;

function changeLine(change: PageChange): PageFacts["changes"][number] {
  const { seenAt, kind, difference } = change;
  return { seenAt: seenAt.toISOString(), kind, words: changeWords(change), difference };
}

const excerptCharacters = 600;

const pageSql = `
  select p.url, p.host, p.host_hash as "hostHash", p.url_hash as "urlHash", p.title,
    p.language, p.declared_language as "declaredLanguage", p.detected_language as "detectedLanguage",
    p.text_search_config as "textSearchConfig", p.content_type as "contentType", p.status,
    p.canonical_url as "canonicalUrl", p.published_at as "publishedAt", p.modified_at as "modifiedAt",
    p.fetched_at as "fetchedAt", c.name as crawler, s.country, p.words,
    coalesce(p.needs_scripts, false) as "needsScripts", p.body_bytes as "bodyBytes",
    p.wire_bytes as "wireBytes", p.shipped_bytes as "shippedBytes", p.digest, p.simhash,
    linking.hosts as "linkingHosts", p.noindex,
    coalesce(h.opt_out_id is not null or ${isOptedOut("u")}, false) as "optedOut", u.etag,
    u.last_modified as "lastModified", h.robots_state as "robotsState", h.robots_at as "robotsAt",
    u.discovered_at as "discoveredAt", u.next_fetch_at as "nextFetchAt", coalesce(u.visits, 0) as visits, u.depth,
    p.text_group as "textGroup", p.duplicate_host_hash as "firstHostHash", p.duplicate_url_hash as "firstUrlHash"
  from page p
  cross join lateral ${linkingHosts("p.url_hash", 0)} linking
  left join frontier_url u using (host_hash, url_hash)
  left join frontier_host h using (host_hash)
  left join subnet s using (subnet_id)
  left join crawler c using (crawler_id)
  where p.host_hash = $1 and p.url_hash = $2`;

async function withoutPage(pool: Pool, key: PageKey): Promise<NoPage> {
  const { rows } = await pool.query<{ outcome: string | null; at: Date | null; opted_out: boolean }>(
    `select u.last_outcome as outcome, u.last_fetched_at as at, coalesce(h.opt_out_id is not null or ${isOptedOut("u")}, false) as opted_out
     from (select $1::bigint as host_hash, $2::bigint as url_hash) given
     left join frontier_url u using (host_hash, url_hash)
     left join frontier_host h using (host_hash)
     where u.url_hash is not null or ${isHeldUrl("given.host_hash", "given.url_hash")}`,
    [key.hostHash, key.urlHash],
  );
  const row = rows[0];
  if (row === undefined) return { type: "unknown" };
  if (row.opted_out) return { type: "opted-out" };
  return { type: "no-page", outcome: row.outcome, at: isoOrNull(row.at) };
}

// The lists of a page: fetches, links, back-links, and similar pages, each read one part at a time.

interface Stretch {
  readonly offset: number;
  readonly limit: number;
}

/** Entries of a list are counted up to this number. */
const countedLimit = 10_000;

const alikeShown = 20;

/** Newest first. */
async function fetchesOf(pool: Pool, key: PageKey, stretch: Stretch): Promise<Listed<PageFetch>> {
  const { rows } = await pool.query<PageFetch>(
    `select f.fetched_at as "fetchedAt", c.name as crawler, f.outcome, f.status, f.blame, host(f.address) as address,
       ${["dns", "connect", "tls", "first_byte", "total"].map(roundedMs).join(", ")},
       f.body_bytes as "bodyBytes", f.wire_bytes as "wireBytes", f.shipped_bytes as "shippedBytes"
     from page_fetch f
     left join crawler c using (crawler_id)
     where f.host_hash = $1 and f.url_hash = $2
     order by f.fetched_at desc
     limit $3 offset $4`,
    [key.hostHash, key.urlHash, stretch.limit, stretch.offset],
  );
  const count = await countOf(pool, "page_fetch where host_hash = $1 and url_hash = $2", key);
  return { items: rows.map(withIsoDates), ...stretch, ...counted(count) };
}

/** `real` columns arrive with binary rounding noise. */
const roundedMs = (name: string) =>
  `round(f.${name}_ms::float8::numeric, 2)::float8 as "${name.replace("_b", "B")}Ms"`;

interface LinkOut extends Pick<OutLink, "anchor" | "nofollow"> {
  readonly to: PageKey;
}

async function linksOut(pool: Pool, key: PageKey, stretch: Stretch): Promise<Listed<LinkOut>> {
  const { rows } = await pool.query<LinkOut>(
    `select json_build_object('hostHash', to_host_hash::text, 'urlHash', to_url_hash::text) as to, anchor, nofollow
     from link
     where host_hash = $1 and url_hash = $2
     order by to_host_hash, to_url_hash
     limit $3 offset $4`,
    [key.hostHash, key.urlHash, stretch.limit, stretch.offset],
  );
  const count = await countOf(pool, "link where host_hash = $1 and url_hash = $2", key);
  return { items: rows, ...stretch, ...counted(count) };
}

type Target = Pick<OutLink, "url" | "state">;

async function targetsOf(pool: Pool, keys: readonly PageKey[]): Promise<Target[]> {
  if (keys.length === 0) return [];
  const { rows } = await pool.query<Target>(
    `select coalesce(u.url, held.url) as url,
       case when coalesce(u.url, held.url) is null then 'unknown'
            when p.url_hash is not null and not p.noindex and h.opt_out_id is null then 'indexed'
            when u.last_fetched_at is not null then 'fetched'
            else 'not-fetched' end as state
     from unnest($1::bigint[], $2::bigint[]) with ordinality as given (host_hash, url_hash, at)
     left join frontier_url u using (host_hash, url_hash)
     left join lateral (
       select url from held_url where host_hash = given.host_hash and url_hash = given.url_hash limit 1
     ) held on u.url is null
     left join page p using (host_hash, url_hash)
     left join frontier_host h using (host_hash)
     order by given.at`,
    [keys.map(({ hostHash }) => hostHash), keys.map(({ urlHash }) => urlHash)],
  );
  return rows;
}

interface LinksInto {
  readonly links: readonly LinkInto[];
  /** One more than the largest count, where there are more. */
  readonly count: number;
}

interface LinkInto {
  readonly from: PageKey;
  /** Null if the page may not be shown. */
  readonly shown: InLink | null;
}

/** Links of other hosts first, then in the order on their pages. */
async function linksInto(pool: Pool, key: PageKey, most: number): Promise<LinksInto> {
  const { rows } = await pool.query<LinkInto>(
    `select json_build_object('hostHash', l.host_hash::text, 'urlHash', l.url_hash::text) as from,
       case when not p.noindex and h.opt_out_id is null then json_build_object('url', p.url, 'title', p.title,
         'anchor', l.anchor, 'nofollow', l.nofollow) end as shown
     from (
       select *
       from ${linksTo("$1::bigint", "$2::bigint", countedLimit)} linking
       order by host_hash = $1, host_hash, url_hash
       limit $3
     ) l
     left join page p using (host_hash, url_hash)
     left join frontier_host h using (host_hash)
     order by l.host_hash = $1, l.host_hash, l.url_hash`,
    [key.hostHash, key.urlHash, most],
  );
  const count = await countOf(pool, `${linksTo("$1::bigint", "$2::bigint", countedLimit + 1)} linking`, key);
  return { links: rows, count };
}

/** From its group (page-writes.ts): the page that had the text first, and those that got it later. */
async function alikePages(
  pool: Pool,
  { hostHash, urlHash, group, digest, firstHostHash, firstUrlHash }: OwnText,
): Promise<AlikePage[]> {
  if (group === null) return [];
  const { rows } = await pool.query<AlikePage>(
    `with firsts as (
       select q.host_hash, q.url_hash
       from page q
       where q.host_hash = $5 and q.url_hash = $6 and q.text_group = $3
     ),
     others as (
       select q.host_hash, q.url_hash
       from page q
       where q.text_group = $3 and q.duplicate_url_hash is not null
       limit ${alikeShown + 2}
     )
     select q.url, q.title, q.digest = $4 as "sameBytes", q.duplicate_url_hash is null as "isFirst"
     from (select * from firsts union select * from others) found
     join page q using (host_hash, url_hash)
     left join frontier_host h using (host_hash)
     where (q.host_hash, q.url_hash) <> ($1, $2) and not q.noindex and h.opt_out_id is null
     order by q.duplicate_url_hash is not null, q.url
     limit ${alikeShown + 1}`,
    [hostHash, urlHash, group, digest, firstHostHash, firstUrlHash],
  );
  return rows;
}

function listedAlike(pages: readonly AlikePage[]): Listed<AlikePage> {
  const items = pages.slice(0, alikeShown);
  return { items, offset: 0, limit: alikeShown, total: items.length, more: pages.length > alikeShown };
}

/** One more than the largest count, where there are more. */
async function countOf(pool: Pool, source: string, key: PageKey): Promise<number> {
  const { rows } = await pool.query<{ entries: number }>(
    `select count(*)::int as entries from (select from ${source} limit ${countedLimit + 1}) counted`,
    [key.hostHash, key.urlHash],
  );
  return rows[0]?.entries ?? 0;
}

const counted = (entries: number) => ({
  total: Math.min(entries, countedLimit),
  more: entries > countedLimit,
});

// What the index knows about one URL.

/** Returns null if the URL has no page. The page that it nearly equals is named as long as that page still has this text. */
export async function pageReport(
  pool: Pool,
  key: UrlKey,
  elsewhere: TextsElsewhere | undefined,
): Promise<PageReport | null> {
  const { rows } = await pool.query<Omit<PageReport, "structured">>(
    `select p.title, p.language, p.words, p.declared_language as "declaredLanguage",
       p.detected_language as "detectedLanguage", p.published_at as "publishedAt", p.modified_at as "modifiedAt",
       q.url as "duplicateOf"
     from page p
     left join page q
       on q.host_hash = p.duplicate_host_hash
       and q.url_hash = p.duplicate_url_hash
       and q.text_group = p.text_group
     where p.host_hash = $1 and p.url_hash = $2`,
    [key.hostHash, key.urlHash],
  );
  if (rows[0] === undefined) return null;
  const { structured } = (await textsOf(pool, [key], elsewhere)).get(nameOf(key)) ?? noText;
  return { ...withIsoDates(rows[0]), structured };
}

/**
 * A row with its times as text: pg returns dates, and ±Infinity for the timestamps of that name, which reports give
 * as null.
 */
function withIsoDates<Told extends object>(row: Told): Told {
  const told = Object.entries(row).map(([name, value]): [string, unknown] => [
    name,
    value instanceof Date || (typeof value === "number" && !Number.isFinite(value))
      ? isoOrNull(value)
      : value,
  ]);
  return Object.fromEntries(told) as Told;
}
