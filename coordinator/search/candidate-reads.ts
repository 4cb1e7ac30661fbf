/**
 * Pages that match, without reading a text: they are looked for where the best ones are, and further only where
 * that brings too few.
 *
 *   1. words in title, headings or address, of pages of the first tier
 *   2. the same of the other pages, and words anywhere, of pages of the first tier
 *   3. words anywhere, of the other pages
 *
 * Each looks at so many matches at most, as many in each part of the table, so that no host comes first for where its
 * rows lie; and keeps the best of them by what can be told from the row itself.
 */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { isOfSite } from "../frontier/back-link-writes.ts";
import { fullHeadRank, fullLinkingHosts, mostPoints } from "./page-score.ts";
import type { WordQuery } from "./query-sql.ts";
import type { SearchQuery } from "./reads.ts";

/** Matches looked at in one step and one language's rules, and those kept of them. */
const looked = 480;
export const kept = 150;
/** Of phrases, pages whose texts are read to see whether the words stand beside each other. */
const phrasesRead = 1600;
/** With so many candidates it is not looked further. */
export const enough = 100;
/** Hosts below a name that are searched at most. */
const hostsBelow = 2000;

export interface CandidateRow {
  host_hash: HostHash;
  url_hash: UrlHash;
  host: string;
  /** Which of the queries it matches, from 1. */
  arm: number;
  head_rank: number;
  popularity: number;
  is_copy: boolean;
  text_group: string | null;
  language: string | null;
  crawler_id: number;
  /** Seconds since 1970. */
  published_s: number | null;
  fetched_s: number;
}

/** The steps in their order; each is taken when those before brought fewer than `enough`. */
export const steps: readonly (readonly Where[])[] = [
  ["first-head"],
  ["other-head", "first-text"],
  ["other-text"],
];

export interface CandidateSearch {
  readonly query: SearchQuery;
  readonly queries: readonly WordQuery[];
  /** The parts of table page. */
  readonly parts: readonly string[];
  /** The hosts that the filter names; null: all. */
  readonly hosts: readonly HostHash[] | null;
}

/** The host of the filter and those below it. */
export async function hostsOfSite(client: PoolClient, site: string): Promise<HostHash[]> {
  const { rows } = await client.query<{ host_hash: HostHash }>(
    `select host_hash from frontier_host h where ${isOfSite("h.host", "$1")} limit ${hostsBelow}`,
    [site],
  );
  return rows.map((row) => row.host_hash);
}

type Where = "first-head" | "other-head" | "first-text" | "other-text";

export async function takeStep(
  client: PoolClient,
  search: CandidateSearch,
  where: readonly Where[],
): Promise<CandidateRow[]> {
  const { queries } = search;
  const filters = filtersOf(search);
  const hasPhrase = queries.some(({ looseQuery }) => looseQuery !== null);
  const values = [
    queries.map(({ configurations }) => configurations.join(",")),
    queries.map(({ query }) => query),
    queries.map(({ headQuery }) => headQuery),
    queries.map(({ anyQuery }) => anyQuery),
    queries.map(({ looseQuery, query }) => looseQuery ?? query),
    ...filters.values,
  ];
  const text = where
    .map((one) => `(${stepSql(one, { ...search, hasPhrase, filters: filters.sql })})`)
    .join("\nunion all\n");
  const name = ["s", ...where, hasPhrase ? "phrase" : "words", ...filters.names].join("-");
  const { rows } = await client.query<CandidateRow>({ name, text, values });
  return rows;
}

function stepSql(
  where: Where,
  {
    parts,
    hosts,
    hasPhrase,
    filters,
  }: CandidateSearch & { readonly hasPhrase: boolean; readonly filters: string },
): string {
  const inText = where === "first-text" || where === "other-text";
  const tier = where === "first-head" || where === "first-text" ? 0 : 1;
  const pagesSql = inText ? (hasPhrase ? phraseSql : textSql) : headSql;
  const others = `p.tier = ${tier}
          and p.text_search_config = any(string_to_array(arm.configurations, ','))
          and not p.noindex${filters}`;
  // All pages of a host are in one part.
  const share = hosts === null ? parts.length : 1;
  return `
  select found.*
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    with ordinality as arm (configurations, query, head_query, any_query, loose_query, at)
  cross join lateral (
    select m.*
    from (${parts.map((part) => `(${pagesSql(part, others, share)})`).join("\n      union all ")}
    ) m
    order by ${mostPoints.head} * least(1, m.head_rank / ${fullHeadRank})
        + ${mostPoints.links} * ln(1 + least(${fullLinkingHosts}, m.popularity)) / ln(1 + ${fullLinkingHosts}) desc,
      m.host_hash, m.url_hash
    limit ${kept}
  ) found`;
}

const columns = `p.host_hash, p.url_hash, p.host, arm.at::int as arm,
        ts_rank(p.head, arm.any_query::tsquery) as head_rank, p.popularity,
        p.duplicate_url_hash is not null as is_copy, p.text_group, p.language, p.crawler_id,
        extract(epoch from p.published_at)::float8 as published_s,
        extract(epoch from p.fetched_at)::float8 as fetched_s`;

const headSql = (part: string, others: string, share: number) => `
        select ${columns}
        from ${part} p
        where p.head @@ arm.head_query::tsquery and ${others}
        limit ${Math.ceil(looked / share)}`;

const textSql = (part: string, others: string, share: number) => `
        select ${columns}
        from ${part} p
        where p.lexemes @@ arm.query::tsquery and ${others}
        limit ${Math.ceil(looked / share)}`;

/** The order of the words is looked at in so many texts and no more. */
const phraseSql = (part: string, others: string, share: number) => `
        select ${columns}
        from (
          select *
          from ${part} p
          where p.lexemes @@ arm.loose_query::tsquery and ${others}
          limit ${Math.ceil(phrasesRead / share)}
        ) p
        where p.lexemes @@ arm.query::tsquery`;

/** Only what is asked for, so that the plan of each combination stays as simple as it can be. */
function filtersOf({ query: { filters, sort }, hosts }: CandidateSearch) {
  const date = "coalesce(p.published_at, p.fetched_at)";
  const asked: readonly (readonly [string, unknown, (parameter: string) => string])[] = [
    ["language", filters.language, (value) => `p.language = ${value}::text`],
    [
      "crawler",
      filters.crawler,
      (value) => `p.crawler_id = (select crawler_id from crawler where name = ${value}::text)`,
    ],
    ["from", filters.from, (value) => `${date} >= ${value}::timestamptz`],
    ["to", filters.to, (value) => `${date} < ${value}::timestamptz + interval '1 day'`],
    ["hosts", hosts, (value) => `p.host_hash = any(${value}::bigint[])`],
    [
      "country",
      filters.country,
      (value) =>
        `exists (select from frontier_host h join subnet s using (subnet_id) where h.host_hash = p.host_hash and s.country = ${value}::text)`,
    ],
  ];
  const used = asked.filter(([, value]) => value !== null);
  return {
    names: [sort, ...used.map(([name]) => name)],
    values: used.map(([, value]) => value),
    sql: used.map(([, , condition], index) => `\n        and ${condition(`$${index + 6}`)}`).join(""),
  };
}
