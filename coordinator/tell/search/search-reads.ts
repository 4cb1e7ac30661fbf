/** What the search reads besides the engine: pages as they may be shown now, and its own answers of the last seconds. */
import { LRUCache } from "lru-cache";
import type { Pool } from "pg";
import { nameOf, type UrlAddress } from "#core/url-key";
import { noText, textsOf } from "../../crawl/changes/page-text-reads.ts";
import { columnsOf } from "../../database/transaction.ts";
import type { SearchEngine } from "./engine/search-engine.ts";
import type { PageReads } from "./page-facts.ts";
import { pageOf } from "./page-reads.ts";
import type { SearchReads, ShownPage } from "./search.ts";

/** `nowMs` reads a monotonic clock. */
export function createSearchReads(
  pool: Pool,
  nowMs: () => number,
  engine: SearchEngine,
): SearchReads & PageReads {
  const answers = new KeptAnswers(nowMs);
  return {
    engine,
    shown: async (keys) => await shownPages(pool, keys, engine.texts),
    keep: async (question, make) => await answers.of(question, make),
    page: async (key, offsets) => await pageOf(pool, key, offsets, engine.texts),
  };
}

/** Leaves out pages that are gone by now, ask not to be shown, or whose site opted out or does not want them searched. */
async function shownPages(
  pool: Pool,
  keys: readonly UrlAddress[],
  elsewhere: SearchEngine["texts"],
): Promise<(ShownPage | null)[]> {
  if (keys.length === 0) return [];
  const texts = textsOf(pool, keys, elsewhere);
  const shown = pool.query<Pick<ShownPage, "url" | "title" | "words"> & { readonly at: number }>({
    name: "search-shown",
    text: `select k.at::int, p.url, p.title, p.words
      from unnest($1::bigint[], $2::bigint[]) with ordinality as k (host_hash, url_hash, at)
      join page p using (host_hash, url_hash)
      left join preference_set s on s.set_id = p.preference_set
      where not p.noindex and coalesce(s.answers ->> 'search', 'allowed') = 'allowed'
        and not exists (select from frontier_host h where h.host_hash = p.host_hash and h.opt_out_id is not null)`,
    values: columnsOf(keys, ["hostHash", "urlHash"]),
  });
  const [found, { rows }] = await Promise.all([texts, shown]);
  const pages = new Map(rows.map(({ at, ...page }) => [at, page]));
  return keys.map((key, index) => {
    const page = pages.get(index + 1);
    return page === undefined ? null : { ...page, ...(found.get(nameOf(key)) ?? noText) };
  });
}

// Answers are cached for seconds, so that the next page of results, or the same question from somebody else, costs
// almost nothing.

/** Few, because each holds up to a thousand pages. */
const keptAnswers = 50;

const answerKeptMs = 10_000;

class KeptAnswers {
  readonly #answers: LRUCache<string, object, () => Promise<object>>;

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
