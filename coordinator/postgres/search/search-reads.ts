/** Everything that search reads of the index (flows/search-ports), over one pool, each statement bounded in time. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import type { PageReads } from "../../flows/page-facts.ts";
import type { Candidate, Candidates, SearchQuery, SearchReads } from "../../flows/search-ports.ts";
import { KeptAnswer } from "../reports/kept-answer.ts";
import { boundedRead } from "./bounded-read.ts";
import {
  allCandidates,
  bestCandidates,
  type CandidateRow,
  enough,
  hostsOfSite,
  kept,
} from "./find-candidates.ts";
import { type HostFacts, HostFactsCache } from "./host-facts.ts";
import { KeptAnswers } from "./kept-answers.ts";
import { pageOf } from "./page-facts.ts";
import { pageTexts, shownPages } from "./read-pages.ts";
import { configurationsSql, wordQueries } from "./search-queries.ts";

/** One statement of a search at most. */
const longestMs = 1500;

export function createSearchReads(pool: Pool, nowMs: () => number): SearchReads & PageReads {
  const answers = new KeptAnswers(nowMs);
  const known = {
    hosts: new HostFactsCache(pool, nowMs),
    configurations: new KeptAnswer(() => configurationsOf(pool), nowMs),
    crawlers: new KeptAnswer(() => crawlerNames(pool), nowMs),
  };
  return {
    candidates: (query) => candidatesOf(pool, known, query),
    async texts(candidates) {
      if (candidates.length === 0) return [];
      const texts = await boundedRead(pool, longestMs, (client) => pageTexts(client, candidates));
      return texts ?? candidates.map(() => null);
    },
    async shown(candidates) {
      if (candidates.length === 0) return [];
      const shown = await boundedRead(pool, longestMs, (client) => shownPages(client, candidates));
      return shown ?? candidates.map(() => null);
    },
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

/** Of a form that thousands of words share, the frequent ones are what was meant. */
const wordsRead = 200;

interface Known {
  readonly hosts: HostFactsCache;
  readonly configurations: KeptAnswer<readonly string[]>;
  readonly crawlers: KeptAnswer<ReadonlyMap<number, string>>;
}

async function candidatesOf(pool: Pool, known: Known, query: SearchQuery): Promise<Candidates> {
  const configurations = await known.configurations.get();
  const none = { pages: [], more: false, searchable: true, cutShort: false };
  const prepared = await boundedRead(pool, longestMs, async (client) => {
    const queries = await wordQueries(
      client,
      query.words,
      configurations.length > 0 ? configurations : ["simple"],
    );
    const { host } = query.filters;
    const hosts = host === null ? null : await hostsOfSite(client, host);
    const search = { query, queries, hosts };
    if (queries.length === 0 || hosts?.length === 0) return { search, best: null };
    return { search, best: await bestCandidates(client, search) };
  });
  if (prepared === null) return { ...none, cutShort: true };
  const { search, best } = prepared;
  if (search.queries.length === 0) return { ...none, searchable: false };
  if (best === null) return none;
  const further =
    best.rows.length >= enough
      ? { rows: [] }
      : await boundedRead(pool, longestMs, (client) => allCandidates(client, search));
  const rows = withoutRepeats([...best.rows, ...(further?.rows ?? [])]);
  const [hosts, crawlers] = await Promise.all([
    known.hosts.of([...new Set(rows.map((row) => row.host_hash))]),
    known.crawlers.get(),
  ]);
  return {
    pages: rows.flatMap((row) => candidateOf(row, hosts, crawlers)),
    more: best.rows.length >= enough || further === null || further.rows.length >= kept,
    searchable: true,
    cutShort: further === null,
  };
}

function withoutRepeats(rows: readonly CandidateRow[]): CandidateRow[] {
  return [...new Map(rows.map((row) => [`${row.host_hash}/${row.url_hash}`, row])).values()];
}

function candidateOf(
  row: CandidateRow,
  hosts: ReadonlyMap<HostHash, HostFacts>,
  crawlers: ReadonlyMap<number, string>,
): Candidate[] {
  const facts = hosts.get(row.host_hash);
  if (facts?.hasOptedOut) return [];
  return [
    {
      hostHash: row.host_hash,
      urlHash: row.url_hash,
      host: row.host,
      query: row.query,
      headRank: row.head_rank,
      linkingHosts: row.popularity,
      isLaterCopy: row.is_copy,
      textGroup: row.text_group,
      language: row.language,
      country: facts?.country ?? null,
      crawler: crawlers.get(row.crawler_id) ?? null,
      publishedAt: row.published_at,
      fetchedAt: row.fetched_at,
    },
  ];
}

async function configurationsOf(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ text_search_config: string }>(configurationsSql);
  return rows.map((row) => row.text_search_config);
}

async function crawlerNames(pool: Pool): Promise<Map<number, string>> {
  const { rows } = await pool.query<{ crawler_id: number; name: string }>(
    "select crawler_id, name from crawler",
  );
  return new Map(rows.map((row) => [row.crawler_id, row.name]));
}
