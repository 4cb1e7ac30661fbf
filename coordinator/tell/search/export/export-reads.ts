/**
 * What an export reads from the database: all pages in the order of their keys, the changed ones, and the sites that
 * opted out.
 */
import type { Pool } from "pg";
import type { UrlHash } from "#core/ids";
import type { UrlAddress } from "#core/url-key";
import { estimatedRows } from "#db/table-sizes";
import { linkingHosts } from "../../../crawl/batch/link-sql.ts";
import { changedPages, createChangeFeed } from "../../../crawl/changes/change-feed-reads.ts";
import { type PageText, textColumns } from "../../../crawl/changes/page-text-reads.ts";
import { columnsOf } from "../../../database/transaction.ts";
import { currentEpoch } from "../../../run/journal/epoch-store.ts";
import { hostsCoveredBy } from "../../../run/opt-outs/mark-writes.ts";
import type { PageNow } from "./export-operation.ts";

export function createExportReads(pool: Pool) {
  return {
    database: async () => {
      const { databaseId, epoch } = await currentEpoch(pool);
      return { databaseId, epoch };
    },
    feed: async () => await createChangeFeed(pool).state(),
    changed: async (since: number, most: number) => await changedPages(pool, since, most),
    /** How many changes come after that one, up to a hundred thousand, and since when the first of them waits. */
    behind: async (cursor: number) => {
      const { rows } = await pool.query<{ readonly changes: number; readonly since: Date | null }>(
        behindSql,
        [cursor],
      );
      return rows[0]!;
    },
    /** The server's estimate. */
    expectedPages: async () => await estimatedRows(pool, "page"),
    /** In the order of their keys, after that one; fewer than `most` are the last. */
    walk: async (after: UrlAddress | null, most: number) =>
      await pagesIn(pool, walkSql, [...keyOr(after), most]),
    pages: async (keys: readonly UrlAddress[]) =>
      await pagesIn(pool, keysSql, columnsOf(keys, ["hostHash", "urlHash"])),
    /** A digest of each one's hosts, which changes when they do. */
    optOuts: async () => await optOuts(pool),
    urlsOfOptOut: async (optOutId: number, after: UrlAddress | null, most: number) =>
      await keysOf(pool, urlsOfOptOutSql, [optOutId, ...keyOr(after), most]),
    /** The hosts of an opt-out that has ended. */
    pagesOnceCovered: async function* (optOutId: number): AsyncGenerator<readonly UrlAddress[]> {
      const hosts = await hostsCoveredBy(pool, optOutId);
      for (const { host_hash: host } of hosts)
        for (let after: UrlHash | string = first; ; ) {
          const keys = await keysOf(pool, pagesOfHostSql, [host, after, pagesAtOnce]);
          if (keys.length > 0) yield keys;
          if (keys.length < pagesAtOnce) break;
          after = keys.at(-1)!.urlHash;
        }
    },
  };
}

const behindSql = `
  select count(*)::int as changes, min(noted_at) as since
  from (select noted_at from page_change where change_number > $1::bigint order by change_number limit 100000) later`;

const keyOr = (key: UrlAddress | null) => [key?.hostHash ?? first, key?.urlHash ?? first];

const pagesAtOnce = 500;

/** The smallest key. */
const first = "-9223372036854775808";

/** For pages `p` and their hosts `h`: whether the index's own search shows them. */
const isShown = `p.url_hash is not null and not p.noindex and h.opt_out_id is null
      and coalesce(s.answers ->> 'search', 'allowed') = 'allowed'`;

const mostAnchors = 20;
const anchorCharacters = 200;

/** `key` is the relation with the pages' keys. */
const columns = `key.host_hash as "hostHash", key.url_hash as "urlHash", ${isShown} as "isShown",
  d.url_hash is not null as "hasText", ${textColumns}, p.url, p.host, p.title, p.text_search_config, p.language, n.country, p.content_type, p.canonical_url,
  p.published_at, p.modified_at, p.fetched_at, c.name as crawler, p.words, linking.hosts as linking_hosts,
  r.page_rank::float8 as page_rank, linking.anchors[:${mostAnchors}] as anchors, p.text_group,
  p.duplicate_url_hash is not null as is_copy, s.answers as uses`;

const joins = `
  left join document d on d.host_hash = key.host_hash and d.url_hash = key.url_hash
  left join frontier_host h on h.host_hash = key.host_hash
  left join subnet n using (subnet_id)
  left join crawler c on c.crawler_id = p.crawler_id
  left join preference_set s on s.set_id = p.preference_set
  left join url_rank r on r.host_hash = key.host_hash and r.url_hash = key.url_hash
  cross join lateral ${linkingHosts("key.url_hash", anchorCharacters)} linking`;

const walkSql = `
  select ${columns}
  from (
    select host_hash, url_hash from page
    where (host_hash, url_hash) > ($1::bigint, $2::bigint)
    order by host_hash, url_hash
    limit $3
  ) key
  left join page p on p.host_hash = key.host_hash and p.url_hash = key.url_hash${joins}
  order by key.host_hash, key.url_hash`;

const keysSql = `
  select ${columns}
  from unnest($1::bigint[], $2::bigint[]) with ordinality as key (host_hash, url_hash, at)
  left join page p on p.host_hash = key.host_hash and p.url_hash = key.url_hash${joins}
  order by key.at`;

type Page = NonNullable<PageNow["page"]>;

interface Dates {
  readonly published_at: Date | null;
  readonly modified_at: Date | null;
  readonly fetched_at: Date;
}

type PageRow = UrlAddress &
  PageText &
  Omit<Page, keyof Dates> &
  Dates & { readonly isShown: boolean; readonly hasText: boolean };

async function pagesIn(pool: Pool, text: string, values: readonly unknown[]): Promise<PageNow[]> {
  const { rows } = await pool.query<PageRow>(text, [...values]);
  return rows.map(({ hostHash, urlHash, isShown: isPage, hasText, ...row }) => {
    if (!isPage) return { hostHash, urlHash, page: null, text: null };
    const { description, headings, structured, text, unquoted, snippetCharacters, ...facts } = row;
    const dates = {
      published_at: facts.published_at?.toISOString() ?? null,
      modified_at: facts.modified_at?.toISOString() ?? null,
      fetched_at: facts.fetched_at.toISOString(),
    };
    const own = hasText ? { description, headings, structured, text, unquoted, snippetCharacters } : null;
    return { hostHash, urlHash, page: { ...facts, ...dates }, text: own };
  });
}

/** A digest of each one's hosts, which changes when they do. */
async function optOuts(pool: Pool): Promise<ReadonlyMap<number, string>> {
  const { rows } = await pool.query<{ id: number; hosts: string }>(
    `select opt_out_id as id, count(*) || ':' || bit_xor(host_hash) as hosts
     from frontier_host
     where opt_out_id is not null
     group by opt_out_id
     order by opt_out_id`,
  );
  return new Map(rows.map(({ id, hosts }) => [id, hosts]));
}

/** Every hash known of them: the pages themselves are deleted once an opt-out is confirmed. */
const urlsOfOptOutSql = `
  select host_hash as "hostHash", url_hash as "urlHash"
  from (
    (select u.host_hash, u.url_hash from frontier_host h join frontier_url u using (host_hash)
     where h.opt_out_id = $1 and (u.host_hash, u.url_hash) > ($2::bigint, $3::bigint)
     order by u.host_hash, u.url_hash limit $4)
    union
    (select p.host_hash, p.url_hash from frontier_host h join page p using (host_hash)
     where h.opt_out_id = $1 and (p.host_hash, p.url_hash) > ($2::bigint, $3::bigint)
     order by p.host_hash, p.url_hash limit $4)
  ) known
  order by host_hash, url_hash
  limit $4`;

const pagesOfHostSql = `
  select host_hash as "hostHash", url_hash as "urlHash" from page
  where host_hash = $1 and url_hash > $2::bigint
  order by url_hash
  limit $3`;

async function keysOf(pool: Pool, text: string, values: readonly unknown[]): Promise<UrlAddress[]> {
  return (await pool.query<UrlAddress>(text, [...values])).rows;
}
