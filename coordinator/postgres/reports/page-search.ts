/**
 * Full-text search over the pages. Lexemes were made by the crawler under the page's own text search
 * configuration, so the words are turned into one query per configuration; all of them together find the
 * candidates in the index, the page's own decides. Words arrive only as parameters.
 */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import type { FoundPage, SearchQuery } from "../../flows/search-pages.ts";
import { snippetOf, startMark, stopMark } from "../../flows/snippet.ts";

/** Pages ranked at most: ranking reads every candidate's lexemes. */
const rankedLimit = 2000;

interface FoundRow {
  url: string;
  host: string;
  title: string;
  language: string | null;
  fetched_at: Date;
  crawler: string | null;
  words: number;
  rank: number;
  headline: string;
  alike: number;
  candidates: number;
  matches: number;
}

export interface FoundPages {
  readonly pages: readonly FoundPage[];
  readonly total: number;
  /** True when there are more than were ranked. */
  readonly more: boolean;
  /** False: nothing but words too common to be indexed, or only excluded ones. */
  readonly searchable: boolean;
}

/** SQL: configurations that make the same query of these words share one row. */
const queriesSql = `
  select distinct on (c.oid) c.oid::regconfig as config, c.cfgname,
    websearch_to_tsquery(c.oid::regconfig, $1) as query
  from pg_ts_config c
  join pg_namespace n on n.oid = c.cfgnamespace and n.nspname = 'pg_catalog'`;

const isSearchable = "numnode(query) > 0 and querytree(query) not in ('', 'T')";

export async function findPages(pool: Pool, query: SearchQuery): Promise<FoundPages> {
  const { rows: combined } = await pool.query<{ query: string | null }>(
    `select string_agg(distinct '(' || query::text || ')', ' | ') as query
     from (${queriesSql}) queries
     where ${isSearchable}`,
    [query.words],
  );
  const anyConfiguration = combined[0]?.query ?? null;
  if (anyConfiguration === null) return { pages: [], total: 0, more: false, searchable: false };
  const { rows } = await pool.query<FoundRow>(foundSql, [
    query.words,
    anyConfiguration,
    query.language,
    query.host === null ? null : (query.host.hostHash satisfies HostHash),
    query.limit,
    query.offset,
    `StartSel=${startMark}, StopSel=${stopMark}, HighlightAll=true`,
  ]);
  const counted = rows[0] ?? (query.offset > 0 ? await countOf(pool, query, anyConfiguration) : none);
  return {
    pages: rows.map(foundPage),
    total: Math.min(counted.candidates, rankedLimit),
    more: counted.matches > rankedLimit,
    searchable: true,
  };
}

/** Of pages with nearly the same text one is left, the first that had it where it matches. */
const candidatesSql = `
  select distinct on (alike_as) host_hash, url_hash, rank, count(*) over (partition by alike_as) - 1 as alike,
    count(*) over () as matches
  from (${matchesSql()}) matching
  order by alike_as, is_duplicate, rank desc, host_hash, url_hash`;

function matchesSql(): string {
  return `
  select p.host_hash, p.url_hash, ts_rank_cd(p.lexemes, q.query, 1) as rank,
    coalesce(p.text_group, p.url_hash) as alike_as, p.duplicate_url_hash is not null as is_duplicate
  from page p
  join (${queriesSql}) q on q.cfgname = p.text_search_config
  where p.lexemes @@ $2::tsquery
    and p.lexemes @@ q.query
    and not p.noindex
    and not exists (select from frontier_host h where h.host_hash = p.host_hash and h.opt_out_id is not null)
    and ($3::text is null or p.language = $3)
    and ($4::bigint is null or p.host_hash = $4)
  limit ${rankedLimit + 1}`;
}

const foundSql = `
  with candidates as materialized (${candidatesSql}),
  chosen as (
    select host_hash, url_hash, rank, alike::int, matches::int,
      (select count(*)::int from candidates) as candidates
    from candidates
    order by rank desc, host_hash, url_hash
    limit $5 offset $6
  )
  select p.url, p.host, p.title, p.language, p.fetched_at, c.name as crawler, p.words, chosen.rank,
    chosen.alike, chosen.candidates, chosen.matches,
    ts_headline(q.config, translate(coalesce(nullif(p.excerpt, ''), p.description), '${startMark}${stopMark}', ''),
      q.query, $7) as headline
  from chosen
  join page p using (host_hash, url_hash)
  join (${queriesSql}) q on q.cfgname = p.text_search_config
  left join crawler c using (crawler_id)
  order by chosen.rank desc, p.host_hash, p.url_hash`;

/** A page of results past the last one still says how many there are. */
async function countOf(pool: Pool, query: SearchQuery, anyConfiguration: string): Promise<Counted> {
  const { rows } = await pool.query<Counted>(
    `select count(*)::int as candidates, coalesce(max(matches), 0)::int as matches from (${candidatesSql}) found`,
    [query.words, anyConfiguration, query.language, query.host === null ? null : query.host.hostHash],
  );
  return rows[0] ?? none;
}

interface Counted {
  readonly candidates: number;
  readonly matches: number;
}

const none: Counted = { candidates: 0, matches: 0 };

function foundPage(row: FoundRow): FoundPage {
  return {
    url: row.url,
    host: row.host,
    title: row.title,
    language: row.language,
    fetchedAt: row.fetched_at.toISOString(),
    crawler: row.crawler,
    words: row.words,
    alike: row.alike,
    rank: Math.round(row.rank * 10_000) / 10_000,
    snippet: snippetOf(row.headline),
  };
}
