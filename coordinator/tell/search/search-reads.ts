/** Everything that search reads from the index (search/search-answer) over one pool, each statement limited in time. */
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { partsOf } from "#db/table-sizes";
import { KeptAnswer } from "../../database/cached-read.ts";
import {
  boundedRead,
  type CandidateRow,
  type CandidateSearch,
  configurationsSql,
  enough,
  type HostFacts,
  HostFactsCache,
  hostsOfSite,
  KeptAnswers,
  kept,
  pageTexts,
  shownPages,
  steps,
  takeStep,
  wordQueries,
} from "./candidate-reads.ts";
import { Headlines } from "./headline-reads.ts";
import type { IndexedCandidate, IndexState, SearchIndex } from "./memory/index-answer.ts";
import { readCrawlerNames } from "./memory/index-page-reads.ts";
import type { PageReads } from "./page-facts.ts";
import { pageOf } from "./page-reads.ts";
import { addressShare } from "./page-score.ts";
import { depthOf, plainWords } from "./query.ts";
import { noFacets } from "./ranking.ts";
import type {
  Candidate,
  Candidates,
  RankedCandidates,
  ScoredCandidate,
  SearchQuery,
  SearchReads,
} from "./search-answer.ts";

/** Time limit for one statement of a search. */
const longestMs = 1500;

/** `index` is the in-memory index. If given, it is asked before the database. */
export function createSearchReads(
  pool: Pool,
  nowMs: () => number,
  index?: SearchIndex,
): SearchReads & PageReads {
  const answers = new KeptAnswers(nowMs);
  const headlines = new Headlines(pool);
  const configurations = new KeptAnswer(() => configurationsOf(pool), nowMs);
  const known = {
    hosts: new HostFactsCache(pool, nowMs),
    configurations: async () => await configurations.get(),
    crawlers: new KeptAnswer(() => readCrawlerNames(pool), nowMs),
    parts: new KeptAnswer(async () => (await partsOf(pool, "page")).map(({ name }) => name), nowMs),
  };
  return {
    ...(index === undefined
      ? {}
      : {
          ranked: (query: SearchQuery, now: Date) => rankedOf(pool, { ...known, index }, { query, now }),
          standIn: () => standInWords(index.state()),
        }),
    candidates: (query) => candidatesOf(pool, known, query),
    texts: (candidates) => pageTexts(pool, candidates),
    shown: (candidates) => shownPages(pool, headlines, candidates),
    async wordsLike(forms, language) {
      const { rows } = await pool.query<{ word: string; pages: number }>(
        `select word, sum(pages)::float8 as pages
         from search_word
         where deletes && $1::text[] and ($2::text is null or language in ($2, ''))
         group by word
         order by pages desc
         limit ${wordsRead}`,
        [forms, language],
      );
      return rows;
    },
    keep: (question, make) => answers.of(question, make),
    page: (key, offsets) => pageOf(pool, key, offsets),
  };
}

/** How many words with the same form are read, the most frequent ones; if there are thousands, one of these was meant. */
const wordsRead = 200;

interface Known {
  readonly hosts: HostFactsCache;
  readonly configurations: () => Promise<readonly string[]>;
  readonly parts: KeptAnswer<readonly string[]>;
  readonly crawlers: KeptAnswer<ReadonlyMap<number, string>>;
}

const none: Candidates = { pages: [], more: false, searchable: true, cutShort: false };

async function rankedOf(
  pool: Pool,
  { index, ...known }: Known & { readonly index: SearchIndex },
  { query, now }: { readonly query: SearchQuery; readonly now: Date },
): Promise<RankedCandidates | null> {
  if (index.state().type !== "ready") return null;
  const [configurations, crawlers] = await Promise.all([known.configurations(), known.crawlers.get()]);
  const arms = await wordQueries(
    pool,
    wordsIn(query),
    configurations.length > 0 ? configurations : ["simple"],
  );
  if (arms.length === 0) return { pages: [], total: 0, facets: noFacets, searchable: false };
  const crawler = [...crawlers].find(([, name]) => name === query.filters.crawler);
  const answer = await index.ask({
    arms,
    plainWords: plainWords(query.words),
    filters: query.filters,
    crawlerId: crawler?.[0] ?? null,
    sort: query.sort,
    wanted: depthOf(query),
    nowS: now.getTime() / 1000,
  });
  if (answer === null) return null;
  const { total, facets } = answer;
  const pages = answer.pages.map((page) => scoredCandidate(page, arms[page.arm]!.query));
  return { pages, total, facets: { ...facets, pages: total }, searchable: true };
}

const wordsIn = ({ words, filters: { title } }: SearchQuery) => ({ words, title });

function scoredCandidate(page: IndexedCandidate, query: string): ScoredCandidate {
  const { arm, signals, alike, publishedS, fetchedS, hostHash, urlHash, ...rest } = page;
  const candidate: Candidate = {
    ...rest,
    query,
    hostHash: hostHash as HostHash,
    urlHash: urlHash as UrlHash,
    headRank: signals.headRank,
    linkingHosts: signals.linkingHosts,
    isLaterCopy: signals.isLaterCopy,
    publishedAt: publishedS === null ? null : new Date(1000 * publishedS),
    fetchedAt: new Date(1000 * fetchedS),
  };
  return { candidate, signals, alike };
}

function standInWords(state: IndexState): string | null {
  switch (state.type) {
    case "off":
    case "ready":
      return null;
    case "building": {
      const share = state.ofPages === 0 ? 0 : Math.floor((100 * state.pages) / state.ofPages);
      return `The index in memory is being built (${share} %). Until then the database answers, more slowly.`;
    }
    case "failed":
      return "The index in memory is not there at the moment. The database answers, more slowly.";
  }
}

async function candidatesOf(pool: Pool, known: Known, query: SearchQuery): Promise<Candidates> {
  const [configurations, parts] = await Promise.all([known.configurations(), known.parts.get()]);
  const found: CandidateRow[] = [];
  let search = null as CandidateSearch | null;
  const looked = await boundedRead(pool, longestMs, async (client) => {
    search = await startSearch(client, query, { configurations, parts });
    return search.queries.length === 0 ? "all steps" : await takeSteps(client, search, found);
  });
  if (search === null) return { ...none, cutShort: true };
  const { queries, plain } = search;
  if (queries.length === 0) return { ...none, searchable: false };
  const rows = withoutRepeats(found);
  const [hosts, crawlers] = await Promise.all([
    known.hosts.of([...new Set(rows.map((row) => row.host_hash))]),
    known.crawlers.get(),
  ]);
  return {
    ...none,
    pages: rows.flatMap((row) => candidateOf(row, { queries, plain, hosts, crawlers })),
    // At most this many texts are read for a phrase.
    more:
      looked !== "all steps" || rows.length >= kept || queries.some(({ looseQuery }) => looseQuery !== null),
    unranked: looked !== "all steps" || rows.some((row) => row.is_some),
    cutShort: looked === null,
  };
}

/** One after the other, until there are enough. */
async function takeSteps(
  client: PoolClient,
  search: CandidateSearch,
  found: CandidateRow[],
): Promise<"all steps" | "enough"> {
  for (const step of steps) {
    if (found.length >= enough) return "enough";
    found.push(...(await takeStep(client, search, step)));
  }
  return "all steps";
}

async function startSearch(
  client: PoolClient,
  query: SearchQuery,
  {
    configurations,
    parts,
  }: { readonly configurations: readonly string[]; readonly parts: readonly string[] },
): Promise<CandidateSearch> {
  const queries = await wordQueries(
    client,
    wordsIn(query),
    configurations.length > 0 ? configurations : ["simple"],
  );
  const { host } = query.filters;
  const plain = plainWords(query.words);
  return { query, queries, plain, parts, hosts: host === null ? null : await hostsOfSite(client, host) };
}

function withoutRepeats(rows: readonly CandidateRow[]): CandidateRow[] {
  return [...new Map(rows.map((row) => [`${row.host_hash}/${row.url_hash}`, row])).values()];
}

interface Around extends Pick<CandidateSearch, "queries" | "plain"> {
  readonly hosts: ReadonlyMap<HostHash, HostFacts>;
  readonly crawlers: ReadonlyMap<number, string>;
}

function candidateOf(row: CandidateRow, { queries, plain, hosts, crawlers }: Around): Candidate[] {
  const facts = hosts.get(row.host_hash);
  if (facts?.hasOptedOut) return [];
  return [
    {
      hostHash: row.host_hash,
      urlHash: row.url_hash,
      host: row.host,
      query: queries[row.arm - 1]!.query,
      headRank: row.head_rank,
      textRank: row.text_rank,
      addressShare: addressShare(row.url, plain),
      linkingHosts: row.popularity,
      isLaterCopy: row.is_copy,
      textGroup: row.text_group,
      language: row.language,
      country: facts?.country ?? null,
      crawler: crawlers.get(row.crawler_id) ?? null,
      publishedAt: row.published_s === null ? null : new Date(1000 * row.published_s),
      fetchedAt: new Date(1000 * row.fetched_s),
      uses: row.uses ?? {},
    },
  ];
}

async function configurationsOf(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ text_search_config: string }>(configurationsSql);
  return rows.map((row) => row.text_search_config);
}
