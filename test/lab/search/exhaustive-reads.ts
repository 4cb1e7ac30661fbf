/**
 * Every match of a question with every part of its score: what recall is measured against. Minutes for a frequent word of
 * a million pages. No host of the made-up index has opted out.
 */
import type { Pool } from "pg";
import {
  boundedRead,
  type CandidateRow,
  configurationsSql,
  filtersOf,
  hostsOfSite,
  wordQueries,
} from "#coordinator/search/candidate-reads";
import type { Candidate, SearchQuery, SearchReads } from "#coordinator/search/search-answer";

const longestMs = 900_000;
const allHosts = 1_000_000;

interface Match extends CandidateRow {
  readonly url: string;
  readonly text_rank: number;
}

interface ReadCandidate extends Candidate {
  readonly url: string;
}

export function exhaustiveReads(pool: Pool): Pick<SearchReads, "candidates" | "texts"> {
  return {
    candidates: async (query) => ({
      pages: await matchesOf(pool, query),
      ...{ more: false, searchable: true, cutShort: false },
    }),
    texts: async (candidates) =>
      (candidates as readonly ReadCandidate[]).map(({ url, textRank = 0 }) => ({ url, textRank })),
  };
}

async function matchesOf(pool: Pool, query: SearchQuery): Promise<ReadCandidate[]> {
  const { rows: known } = await pool.query<{ text_search_config: string }>(configurationsSql);
  const found = await boundedRead(pool, longestMs, async (client) => {
    const { host } = query.filters;
    const hosts = host === null ? null : await hostsOfSite(client, host, allHosts);
    const filters = filtersOf({ query, hosts });
    const queries = await wordQueries(
      client,
      { words: query.words },
      known.map((row) => row.text_search_config),
    );
    await client.query("set local work_mem = '256MB'");
    const { rows } = await client.query<Match>(matchesSql(filters.sql), [
      queries.map(({ configurations }) => configurations.join(",")),
      queries.map(({ query: words }) => words),
      queries.map(({ headQuery }) => headQuery),
      queries.map(({ anyQuery }) => anyQuery),
      queries.map(() => ""),
      queries.map(() => null),
      ...filters.values,
    ]);
    return rows.map((row) => readCandidate(row, queries[row.arm - 1]!.query));
  });
  if (found === null) throw new Error(`"${query.words}" took longer than ${longestMs / 1000} s`);
  return found;
}

/** A page has one configuration, hence comes once. */
const matchesSql = (filters: string) => `
  select p.host_hash, p.url_hash, p.url, p.host, arm.at::int as arm, p.popularity,
    ts_rank(p.head, arm.any_query::tsquery) as head_rank,
    ts_rank_cd(p.lexemes, arm.query::tsquery, 1) as text_rank,
    p.duplicate_url_hash is not null as is_copy, p.text_group,
    extract(epoch from p.published_at)::float8 as published_s,
    extract(epoch from p.fetched_at)::float8 as fetched_s
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    with ordinality as arm (configurations, query, head_query, any_query, loose_query, title_query, at)
  join page p on (p.lexemes @@ arm.query::tsquery or p.head @@ arm.head_query::tsquery)
    and p.text_search_config = any(string_to_array(arm.configurations, ','))
    and not p.noindex${filters}`;

function readCandidate(row: Match, query: string): ReadCandidate {
  return {
    hostHash: row.host_hash,
    urlHash: row.url_hash,
    host: row.host,
    url: row.url,
    query,
    headRank: row.head_rank,
    textRank: row.text_rank,
    linkingHosts: row.popularity,
    isLaterCopy: row.is_copy,
    textGroup: row.text_group,
    language: null,
    country: null,
    crawler: null,
    publishedAt: row.published_s === null ? null : new Date(1000 * row.published_s),
    fetchedAt: new Date(1000 * row.fetched_s),
    uses: {},
  };
}
