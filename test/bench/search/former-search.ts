/**
 * The search as it was before every match was ranked (commit 2d62f465), to hold the present one against: the first 60
 * matches of each part of the table in the order of their rows, and headlines by `ts_headline`.
 */
import { createHash } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import {
  boundedRead,
  configurationsSql,
  filtersOf,
  hostsOfSite,
  wordQueries,
} from "#coordinator/search/candidate-reads";
import { startMark, stopMark } from "#coordinator/search/headline";
import { fullHeadRank, fullLinkingHosts, mostPoints } from "#coordinator/search/page-score";
import type {
  Candidate,
  Candidates,
  SearchQuery,
  SearchReads,
  ShownPage,
} from "#coordinator/search/search-answer";
import { createSearchReads } from "#coordinator/search/search-reads";
import type { HostHash, UrlHash } from "#core/ids";
import { partsOf } from "#db/table-sizes";

const looked = 480;
const kept = 150;
const phrasesRead = 1600;
const enough = 100;
const longestMs = 1500;

const steps = [["first-head"], ["other-head", "first-text"], ["other-text"]] as const;
type Where = (typeof steps)[number][number];

interface Row {
  host_hash: HostHash;
  url_hash: UrlHash;
  host: string;
  arm: number;
  head_rank: number;
  popularity: number;
  is_copy: boolean;
  text_group: string | null;
  language: string | null;
  crawler_id: number;
  published_s: number | null;
  fetched_s: number;
  country: string | null;
}

export function formerSearchReads(pool: Pool, nowMs: () => number): SearchReads {
  const around = Promise.all([
    pool.query<{ text_search_config: string }>(configurationsSql),
    partsOf(pool, "page"),
    pool.query<{ crawler_id: number; name: string }>("select crawler_id, name from crawler"),
  ]).then(([configurations, parts, crawlers]) => ({
    configurations: configurations.rows.map((row) => row.text_search_config),
    parts: parts.map(({ name }) => name),
    crawlers: new Map(crawlers.rows.map((row) => [row.crawler_id, row.name])),
    countries: new Map<HostHash, string | null>(),
  }));
  return {
    ...createSearchReads(pool, nowMs),
    candidates: async (query) => await candidatesOf(pool, await around, query),
    shown: async (candidates) => await shownPages(pool, candidates),
  };
}

interface Around {
  readonly configurations: readonly string[];
  readonly parts: readonly string[];
  readonly crawlers: ReadonlyMap<number, string>;
  /** Asked once a host. */
  readonly countries: Map<HostHash, string | null>;
}

async function candidatesOf(pool: Pool, around: Around, query: SearchQuery): Promise<Candidates> {
  const rows: Row[] = [];
  let queries: Awaited<ReturnType<typeof wordQueries>> = [];
  let hosts: HostHash[] | null = null;
  let cutShort = false;
  for (const [at, step] of steps.entries()) {
    if (rows.length >= enough || cutShort) break;
    const found = await boundedRead(pool, longestMs, async (client) => {
      if (at === 0) {
        const { host } = query.filters;
        queries = await wordQueries(client, { words: query.words }, around.configurations);
        hosts = host === null ? null : await hostsOfSite(client, host);
      }
      if (queries.length === 0) return [];
      return await takeStep(client, { query, hosts, queries, parts: around.parts, step });
    });
    if (found === null) cutShort = true;
    else rows.push(...found);
  }
  await addCountries(pool, around.countries, rows);
  const each = new Map(rows.map((row) => [`${row.host_hash}/${row.url_hash}`, row]));
  const pages = [...each.values()].map(
    (row): Candidate => ({
      hostHash: row.host_hash,
      urlHash: row.url_hash,
      host: row.host,
      query: queries[row.arm - 1]!.query,
      headRank: row.head_rank,
      linkingHosts: row.popularity,
      isLaterCopy: row.is_copy,
      textGroup: row.text_group,
      language: row.language,
      country: around.countries.get(row.host_hash) ?? null,
      crawler: around.crawlers.get(row.crawler_id) ?? null,
      publishedAt: row.published_s === null ? null : new Date(1000 * row.published_s),
      fetchedAt: new Date(1000 * row.fetched_s),
      uses: {},
    }),
  );
  return { pages, more: rows.length >= enough, searchable: queries.length > 0, cutShort };
}

async function addCountries(
  pool: Pool,
  known: Map<HostHash, string | null>,
  rows: readonly Row[],
): Promise<void> {
  const missing = [...new Set(rows.map((row) => row.host_hash))].filter((host) => !known.has(host));
  if (missing.length === 0) return;
  const { rows: found } = await pool.query<{ host_hash: HostHash; country: string | null }>({
    name: "former-hosts",
    text: `select h.host_hash, s.country from frontier_host h left join subnet s using (subnet_id)
      where h.host_hash = any($1::bigint[])`,
    values: [missing],
  });
  for (const { host_hash, country } of found) known.set(host_hash, country);
}

async function takeStep(
  client: PoolClient,
  search: {
    readonly query: SearchQuery;
    readonly hosts: readonly HostHash[] | null;
    readonly queries: Awaited<ReturnType<typeof wordQueries>>;
    readonly parts: readonly string[];
    readonly step: readonly Where[];
  },
): Promise<Row[]> {
  const { queries } = search;
  const filters = filtersOf(search);
  const hasPhrase = queries.some(({ looseQuery }) => looseQuery !== null);
  const text = search.step
    .map((where) => `(${stepSql(where, { ...search, hasPhrase, filters: filters.sql })})`)
    .join("\nunion all\n");
  const { rows } = await client.query<Row>({
    name: `former-${createHash("sha1").update(text).digest("base64url")}`,
    text,
    values: [
      queries.map(({ configurations }) => configurations.join(",")),
      queries.map(({ query }) => query),
      queries.map(({ headQuery }) => headQuery),
      queries.map(({ anyQuery }) => anyQuery),
      queries.map(({ looseQuery, query }) => looseQuery ?? query),
      queries.map(() => null),
      ...filters.values,
    ],
  });
  return rows;
}

function stepSql(
  where: Where,
  {
    parts,
    hosts,
    hasPhrase,
    filters,
  }: {
    readonly parts: readonly string[];
    readonly hosts: readonly HostHash[] | null;
    readonly hasPhrase: boolean;
    readonly filters: string;
  },
): string {
  const inText = where === "first-text" || where === "other-text";
  const tier = where === "first-head" || where === "first-text" ? 0 : 1;
  const others = `p.tier = ${tier}
    and p.text_search_config = any(string_to_array(arm.configurations, ','))
    and not p.noindex${filters}`;
  const share = hosts === null ? parts.length : 1;
  const pages = (part: string) => {
    if (!inText)
      return `select ${columns} from ${part} p where p.head @@ arm.head_query::tsquery and ${others}
        limit ${Math.ceil(looked / share)}`;
    if (!hasPhrase)
      return `select ${columns} from ${part} p where p.lexemes @@ arm.query::tsquery and ${others}
        limit ${Math.ceil(looked / share)}`;
    return `select ${columns} from (
        select * from ${part} p where p.lexemes @@ arm.loose_query::tsquery and ${others}
        limit ${Math.ceil(phrasesRead / share)}
      ) p where p.lexemes @@ arm.query::tsquery`;
  };
  return `
  select found.*
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    with ordinality as arm (configurations, query, head_query, any_query, loose_query, title_query, at)
  cross join lateral (
    select m.*
    from (${parts.map((part) => `(${pages(part)})`).join("\n union all ")}) m
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

async function shownPages(pool: Pool, candidates: readonly Candidate[]): Promise<(ShownPage | null)[]> {
  if (candidates.length === 0) return [];
  const { rows } = await pool.query<{ at: number } & ShownPage>({
    name: "former-shown",
    text: `select k.at::int, p.url, p.title, p.words,
        ts_headline(c.oid::regconfig,
          translate(coalesce(nullif(p.excerpt, ''), p.description), '${startMark}${stopMark}', ''),
          k.query::tsquery, 'StartSel=${startMark}, StopSel=${stopMark}, HighlightAll=true') as headline
      from unnest($1::bigint[], $2::bigint[], $3::text[]) with ordinality as k (host_hash, url_hash, query, at)
      join page p using (host_hash, url_hash)
      join pg_catalog.pg_ts_config c
        on c.cfgname = p.text_search_config and c.cfgnamespace = 'pg_catalog'::regnamespace
      where not p.noindex
        and not exists (select from frontier_host h where h.host_hash = p.host_hash and h.opt_out_id is not null)`,
    values: [
      candidates.map(({ hostHash }) => hostHash),
      candidates.map(({ urlHash }) => urlHash),
      candidates.map(({ query }) => query),
    ],
  });
  const shown = new Map(rows.map(({ at, ...page }) => [at, page]));
  return candidates.map((_, index) => shown.get(index + 1) ?? null);
}
