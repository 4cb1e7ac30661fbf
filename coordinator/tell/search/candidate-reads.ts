/**
 * Finds matching pages without reading any text. It looks where the best pages are first, and goes on only while
 * there are too few:\n\n 1. words in title, headings or address, of pages of the first tier\n 2. the same of the
 * other pages, and words anywhere, of pages of the first tier\n 3. words anywhere, of the other pages\n\nEach step
 * looks at a limited number of matches, the same number in each partition of the table, so that no host gains from
 * where its rows happen to be. It keeps those that rank best by what the row itself says.
 */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { growingTo } from "#core/small-collections";
import type { UseAnswers } from "#protocol/preferences";
import { isOfSite } from "../../crawl/frontier/site-rule-writes.ts";
import { withoutMarks } from "./headline.ts";
import type { Headlines } from "./headline-reads.ts";
import { fullHeadRank, fullLinkingHosts, halfTextRank, mostPoints } from "./page-score.ts";
import { contentTypes, unstated } from "./query.ts";
import type { Candidate, PageText, SearchQuery, ShownPage } from "./search-answer.ts";

/**
 * Matches that one step looks at under one language's rules, and how many of them it keeps: more than the pages of
 * results can reach.
 */
const looked = 4800;

export const kept = 1000;

/** For phrases: pages whose texts are read to see whether the words are adjacent. */
const phrasesRead = 4800;

/** With this many candidates the search stops looking. */
export const enough = 700;

/** At most this many hosts below a name are searched. */
const hostsBelow = 2000;

export interface CandidateRow {
  host_hash: HostHash;
  url_hash: UrlHash;
  host: string;
  /** Which of the queries it matches, from 1. */
  arm: number;
  url: string;
  head_rank: number;
  /** The rank by title, headings and address alone, normalised like the whole text's rank. */
  text_rank: number;
  popularity: number;
  is_copy: boolean;
  text_group: string | null;
  language: string | null;
  crawler_id: number;
  /** Seconds since 1970. */
  published_s: number | null;
  fetched_s: number;
  uses: UseAnswers | null;
  /** True where some partition had more matches than this step looked at, or more than it keeps. */
  is_some: boolean;
}

/** The steps in order. Each is taken if those before it found fewer than `enough`. */
export const steps: readonly (readonly Where[])[] = [
  ["first-head"],
  ["other-head", "first-text"],
  ["other-text"],
];

export interface CandidateSearch {
  readonly query: SearchQuery;
  readonly queries: readonly WordQuery[];
  /** As people type them. */
  readonly plain: readonly string[];
  /** The partitions of table page. */
  readonly parts: readonly string[];
  /** The hosts that the filter names; null means all. */
  readonly hosts: readonly HostHash[] | null;
}

/** The host of the filter and those below it. */
export async function hostsOfSite(client: PoolClient, site: string): Promise<HostHash[]> {
  const { rows } = await client.query<{ host_hash: HostHash }>(
    `select host_hash from frontier_host h where ${isOfSite("h.host", "$1")} limit $2`,
    [site, hostsBelow],
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
    queries.map(({ titleQuery }) => (titleQuery === null ? null : inTitle(titleQuery))),
    ...filters.values,
  ];
  const text = where
    .map((one) => `(${stepSql(one, { ...search, hasPhrase, filters: filters.sql })})`)
    .join("\nunion all\n");
  const name = `search-${createHash("sha1").update(text).digest("base64url")}`;
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
  // All pages of a host are in one partition.
  const share = hosts === null ? parts.length : 1;
  return `
  select found.host_hash, found.url_hash, found.host, found.url, found.arm, found.head_rank, found.text_rank,
    found.popularity, found.is_copy, found.text_group, found.language, found.crawler_id, found.published_s,
    found.fetched_s, found.is_some, stated.answers as uses
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    with ordinality as arm (configurations, query, head_query, any_query, loose_query, title_query, at)
  cross join lateral (
    with m as materialized (
      ${parts.map((part, at) => `(${pagesSql(part, others, share, at)})`).join("\n      union all ")}
    )
    select m.*, (select max(c.n) >= ${Math.ceil(looked / share)} or sum(c.n) > ${kept} or bool_or(c.filled)
        from (select count(*) as n, bool_or(m.filled) as filled from m group by m.part) c) as is_some
    from m
    order by ${mostPoints.text} * m.text_rank / (m.text_rank + ${halfTextRank})
        + ${mostPoints.head} * least(1, m.head_rank / ${fullHeadRank})
        + ${mostPoints.address} * least(1, m.address_rank / ${fullHeadRank})
        + ${mostPoints.links} * ln(1 + least(${fullLinkingHosts}, m.popularity)) / ln(1 + ${fullLinkingHosts})
        - case when m.is_copy then ${mostPoints.copy} else 0 end desc,
      m.host_hash, m.url_hash
    limit ${kept}
  ) found
  left join preference_set stated on stated.set_id = found.preference_set`;
}

/** `filled`: more may match than were read. */
const columnsOf = (
  part: number,
  filled = "false",
) => `${part} as part, ${filled} as filled, p.host_hash, p.url_hash, p.host, p.url, arm.at::int as arm,
        ts_rank(p.head, arm.any_query::tsquery) as head_rank,
        ts_rank('{0,1,0,0}', p.head, arm.any_query::tsquery) as address_rank,
        ts_rank_cd(p.head, arm.query::tsquery) / ln(2 + greatest(0, p.words)) as text_rank, p.popularity,
        p.duplicate_url_hash is not null as is_copy, p.text_group, p.language, p.crawler_id, p.preference_set,
        extract(epoch from p.published_at)::float8 as published_s,
        extract(epoch from p.fetched_at)::float8 as fetched_s`;

const matchSql = (matches: string) => (part: string, others: string, share: number, at: number) =>
  `
        select ${columnsOf(at)}
        from ${part} p
        where ${matches} and ${others}
        limit ${Math.ceil(looked / share)}`;

const headSql = matchSql("p.head @@ arm.head_query::tsquery");
const textSql = matchSql("p.lexemes @@ arm.query::tsquery");

/** The order of the words is checked in at most this many texts. */
const phraseSql = (part: string, others: string, share: number, at: number) => `
        select ${columnsOf(at, `p.read = ${Math.ceil(phrasesRead / share)}`)}
        from (
          select read.*, count(*) over () as read
          from (
            select *
            from ${part} p
            where p.lexemes @@ arm.loose_query::tsquery and ${others}
            limit ${Math.ceil(phrasesRead / share)}
          ) read
        ) p
        where p.lexemes @@ arm.query::tsquery`;

/**
 * Contains only the conditions that are asked for, which keeps the plan of each combination simple. Parameters start
 * at $7; the page is `p`, and `arm` holds its words under the rules of its language.
 */
function filtersOf({ query: { filters }, hosts }: Pick<CandidateSearch, "query" | "hosts">) {
  const date = "coalesce(p.published_at, p.fetched_at)";
  const asked: readonly (readonly [unknown, (parameter: string) => string])[] = [
    [filters.language, (value) => `p.language = ${value}::text`],
    [
      filters.crawler,
      (value) => `p.crawler_id = (select crawler_id from crawler where name = ${value}::text)`,
    ],
    [filters.from, (value) => `${date} >= ${value}::timestamptz`],
    [filters.to, (value) => `${date} < ${value}::timestamptz + interval '1 day'`],
    [
      filters.preference,
      (value) =>
        `coalesce((select s.answers ->> split_part(${value}::text, '=', 1) from preference_set s
          where s.set_id = p.preference_set), '${unstated}') = split_part(${value}::text, '=', 2)`,
    ],
    [
      filters.excludeHost?.split(",") ?? null,
      (value) =>
        `not exists (select from unnest(${value}::text[]) s (site) where p.host = s.site or right(p.host, length(s.site) + 1) = '.' || s.site)`,
    ],
    [
      filters.title === null ? null : true,
      (value) => `${value}::boolean and (arm.title_query is null or p.head @@ arm.title_query::tsquery)`,
    ],
    [
      filters.type === null ? null : (contentTypes[filters.type] ?? []),
      (value) => `p.content_type = any(${value}::text[])`,
    ],
    [hosts, (value) => `p.host_hash = any(${value}::bigint[])`],
    [
      filters.country,
      (value) =>
        `exists (select from frontier_host h join subnet s using (subnet_id) where h.host_hash = p.host_hash and s.country = ${value}::text)`,
    ],
  ];
  const used = asked.filter(([value]) => value !== null);
  return {
    values: used.map(([value]) => value),
    sql: used.map(([, condition], index) => `\n        and ${condition(`$${index + 7}`)}`).join(""),
  };
}

// Reads with a time limit of their own: the server ends what takes longer, and that counts as an answer.

/** Postgres' error code for a statement cancelled by its time limit. */
const queryCanceled = "57014";

/**
 * Returns null if a statement took longer than `longestMs`. Plans are made once per connection, always by index (the tables
 * are too large for anything else) and without JIT compilation, which takes longer than running them.
 */
export async function boundedRead<T>(
  pool: Pool,
  longestMs: number,
  read: (client: PoolClient) => Promise<T>,
): Promise<T | null> {
  const client = await pool.connect();
  try {
    await client.query(`begin read only;
      set local statement_timeout = ${longestMs};
      set local plan_cache_mode = force_generic_plan;
      set local enable_seqscan = off;
      set local jit = off;
      set local work_mem = '32MB'`);
    return await read(client);
  } catch (error) {
    if ((error as { code?: string }).code === queryCanceled) return null;
    throw error;
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}

// Where hosts are and whether they have opted out, cached for a minute: the same hosts come up in many searches.

export interface HostFacts {
  /** The country of its address's subnet; null if unknown. */
  readonly country: string | null;
  readonly hasOptedOut: boolean;
}

/** Decides only what is counted; page-reads.ts checks again what is shown. */
const keptMs = 60_000;

const keptHosts = 50_000;

export class HostFactsCache {
  readonly #pool: Pool;
  readonly #facts: LRUCache<HostHash, HostFacts>;

  constructor(pool: Pool, nowMs: () => number) {
    this.#pool = pool;
    this.#facts = new LRUCache({
      ...growingTo(keptHosts),
      ttl: keptMs,
      ttlResolution: 0,
      perf: { now: nowMs },
    });
  }

  async of(hosts: readonly HostHash[]): Promise<Map<HostHash, HostFacts>> {
    const found = new Map<HostHash, HostFacts>();
    const missing: HostHash[] = [];
    for (const host of hosts) {
      const facts = this.#facts.get(host);
      if (facts === undefined) missing.push(host);
      else found.set(host, facts);
    }
    for (const [host, facts] of await this.#read(missing)) {
      this.#facts.set(host, facts);
      found.set(host, facts);
    }
    return found;
  }

  async #read(hosts: readonly HostHash[]): Promise<[HostHash, HostFacts][]> {
    if (hosts.length === 0) return [];
    const { rows } = await this.#pool.query<{
      host_hash: HostHash;
      country: string | null;
      opted_out: boolean;
    }>({
      name: "search-hosts",
      text: `select h.host_hash, s.country, h.opt_out_id is not null as opted_out
        from frontier_host h
        left join subnet s using (subnet_id)
        where h.host_hash = any($1::bigint[])`,
      values: [hosts],
    });
    return rows.map((row) => [row.host_hash, { country: row.country, hasOptedOut: row.opted_out }]);
  }
}

// Answers are cached for seconds, so that the next page of results, or the same question from somebody else, costs
// almost nothing.

/** Few, because each may hold `kept` pages of every step. */
const keptAnswers = 50;

const answerKeptMs = 10_000;

export class KeptAnswers {
  readonly #answers: LRUCache<string, object, () => Promise<object>>;

  /** `nowMs` reads a monotonic clock. */
  constructor(nowMs: () => number) {
    this.#answers = new LRUCache({
      max: keptAnswers,
      ttl: answerKeptMs,
      ttlResolution: 0,
      perf: { now: nowMs },
      fetchMethod: async (_question, _former, { context: make }) => await make(),
      // Where more questions run at once than are cached, each still gets its answer.
      ignoreFetchAbort: true,
    });
  }

  /**
   * A question that several callers ask at once is answered once. `make` decides the type: one question always has
   * the same type.
   */
  async of<T extends object>(question: string, make: () => Promise<T>): Promise<T> {
    return (await this.#answers.fetch(question, { context: make })) as T;
  }
}

// Reads the best candidates: how their texts rank, and what is shown of them.

export async function pageTexts(pool: Pool, candidates: readonly Candidate[]): Promise<(PageText | null)[]> {
  if (candidates.length === 0) return [];
  const { rows } = await pool.query<{ at: number; url: string; rank: number }>({
    name: "search-texts",
    text: `select k.at::int, p.url, ts_rank_cd(p.lexemes, k.query::tsquery, 1) as rank
      from unnest($1::bigint[], $2::bigint[], $3::text[]) with ordinality as k (host_hash, url_hash, query, at)
      join page p using (host_hash, url_hash)`,
    values: keysOf(candidates),
  });
  const texts = new Map(rows.map((row) => [row.at, { url: row.url, textRank: row.rank }]));
  return candidates.map((_, index) => texts.get(index + 1) ?? null);
}

/** Leaves out pages that have opted out, ask not to be shown, or are gone by now. */
export async function shownPages(
  pool: Pool,
  headlines: Headlines,
  candidates: readonly Candidate[],
): Promise<(ShownPage | null)[]> {
  if (candidates.length === 0) return [];
  const { rows } = await pool.query<ShownRow>({
    name: "search-shown",
    text: `select k.at::int, p.url, p.title, p.words, coalesce(nullif(p.excerpt, ''), p.description) as text,
        p.text_search_config as configuration, k.query
      from unnest($1::bigint[], $2::bigint[], $3::text[]) with ordinality as k (host_hash, url_hash, query, at)
      join page p using (host_hash, url_hash)
      join pg_catalog.pg_ts_config c
        on c.cfgname = p.text_search_config and c.cfgnamespace = 'pg_catalog'::regnamespace
      where not p.noindex
        and not exists (select from frontier_host h where h.host_hash = p.host_hash and h.opt_out_id is not null)`,
    values: keysOf(candidates),
  });
  const marked = await headlines.mark(rows.map((row) => ({ ...row, text: withoutMarks(row.text) })));
  const shown = new Map(
    rows.map(({ at, url, title, words }, index) => [at, { url, title, words, headline: marked[index]! }]),
  );
  return candidates.map((_, index) => shown.get(index + 1) ?? null);
}

interface ShownRow {
  at: number;
  url: string;
  title: string;
  words: number;
  text: string;
  configuration: string;
  query: string;
}

function keysOf(candidates: readonly Candidate[]): unknown[] {
  return [
    candidates.map(({ hostHash }) => hostHash),
    candidates.map(({ urlHash }) => urlHash),
    candidates.map(({ query }) => query),
  ];
}

// Turns the words into queries. The crawler made the lexemes under the page's own text search configuration, so the
// words become one query for each configuration in the index; configurations that make the same lexemes of them share
// a query. Words arrive only as parameters.

interface WordQuery {
  /** Configurations of the pages that this query is for. */
  readonly configurations: readonly string[];
  readonly query: string;
  /**
   * The same query with the words of a phrase anywhere, because the index knows words but not their positions; null if there
   * is no phrase.
   */
  readonly looseQuery: string | null;
  /** For title, headings and address: the address holds words unstemmed. */
  readonly headQuery: string;
  /** Any of the words; ranks title, headings and address. */
  readonly anyQuery: string;
  /** The words that the title must have, if any. */
  readonly titleQuery: string | null;
}

/** Words anywhere, as Postgres writes the query; the other is the same for words in the title. */
function inTitle(query: string): string {
  return query.replace(/'(?:[^']|'')*'/g, "$&:A");
}

/** Returns an empty list if all words are excluded or too common to be indexed. */
export async function wordQueries(
  client: Pool | PoolClient,
  { words, title = null }: { readonly words: string; readonly title?: string | null },
  configurations: readonly string[],
): Promise<WordQuery[]> {
  const { rows } = await client.query<WordQuery>({
    name: "search-queries",
    text: queriesSql,
    values: [words, configurations, title],
  });
  return rows;
}

const queriesSql = `
  select array_agg(made.cfgname::text order by made.cfgname) as configurations, made.query::text as query,
    case when made.query::text ~ '<(-|[0-9]+)>'
      then regexp_replace(made.query::text, '<(-|[0-9]+)>', '&', 'g') end as "looseQuery",
    (case when made.plain = made.query or numnode(made.plain) = 0 then made.query
       else made.query || made.plain end)::text as "headQuery",
    replace(regexp_replace(made.query::text, ' (&|<->|<[0-9]+>) ', ' | ', 'g'), '!', '') as "anyQuery",
    nullif(made.title::text, '') as "titleQuery"
  from (
    select c.cfgname, websearch_to_tsquery(c.oid::regconfig, $1) as query,
      websearch_to_tsquery('pg_catalog.simple', $1) as plain, websearch_to_tsquery(c.oid::regconfig, $3) as title
    from pg_catalog.pg_ts_config c
    join pg_catalog.pg_namespace n on n.oid = c.cfgnamespace and n.nspname = 'pg_catalog'
    where c.cfgname = any($2::text[])
  ) made
  where numnode(made.query) > 0 and querytree(made.query) not in ('', 'T')
  group by made.query, made.plain, made.title`;

/** The configurations of pages in the index, found by one step through the index for each. */
export const configurationsSql = `
  with recursive known as (
    (select text_search_config from page order by text_search_config limit 1)
    union all
    select (select p.text_search_config from page p where p.text_search_config > k.text_search_config
      order by p.text_search_config limit 1)
    from known k
    where k.text_search_config is not null
  )
  select text_search_config from known where text_search_config is not null`;
