/** The search's questions to OpenSearch. Each is asked once: a person waits, and the next one may be lucky. */
import { z } from "zod";
import type { UseAnswers } from "#protocol/preferences";
import type { TextsElsewhere } from "../../../crawl/changes/page-text-reads.ts";
import { slipsBetween } from "../edit-distance.ts";
import { keyOfDocument } from "../export/export-operation.ts";
import {
  causeWords,
  engineOf,
  OpenSearchHttp,
  type OpenSearchPlace,
  statusWords,
} from "./opensearch-http-client.ts";
import { cursorId, keptSchema, storedTexts } from "./opensearch-mapping.ts";
import { factColumns, queryOf } from "./opensearch-query.ts";
import {
  type EngineAnswer,
  EngineAway,
  type EngineMatch,
  type EngineQuestion,
  type SearchEngine,
  type WrittenWord,
} from "./search-engine.ts";

/** The engine's own limit, after which it answers with what it has found. */
const longestSearch = "3s";
const timeoutMs = 10_000;
const connections = 16;
const mostConfigurations = 100;
/** As typed, and as many again with its first letters swapped. */
const mostWords = 25;

interface EngineLook {
  readonly pages: number;
  readonly bytes: number;
  /** Null if none has begun. */
  readonly export: { readonly cursor: number; readonly wasComplete: boolean } | null;
}

export class OpenSearchEngine implements Omit<SearchEngine, "state"> {
  readonly #http: OpenSearchHttp;

  constructor(place: OpenSearchPlace) {
    this.#http = new OpenSearchHttp(place, { timeoutMs, connections });
  }

  async close(): Promise<void> {
    await this.#http.close();
  }

  /** How much it has, and how far the export into it is. */
  async look(): Promise<EngineLook> {
    const nothing = { size: 0, track_total_hits: false, terminate_after: 1 };
    const { _shards } = await this.#ask("/_search", searchSchema.pick({ _shards: true }), nothing);
    const lost = _shards.total - _shards.successful;
    if (lost > 0)
      throw new EngineAway(
        `${lost} of ${_shards.total} parts of the index are on no node that works (it is red)`,
      );
    const { primaries } = (await this.#ask("/_stats/docs,store", statsSchema, null))._all;
    const { docs } = await this.#ask("/_mget", cursorSchema, { ids: [cursorId] });
    const kept = docs._source;
    return {
      // Beside the pages there is only the state of their export.
      pages: primaries.docs.count - (kept === null ? 0 : 1),
      bytes: primaries.store.size_in_bytes,
      export: kept === null ? null : { cursor: kept.nearcrawl_cursor.cursor, wasComplete: kept.was_complete },
    };
  }

  async version(): Promise<string> {
    const { version, fault } = engineOf(await this.#ask(null, z.unknown(), null));
    if (fault !== null) throw new EngineAway(`it is ${fault}`);
    return version;
  }

  async search({ arms, filters, most }: EngineQuestion): Promise<EngineAnswer> {
    const answer = await this.#ask("/_search?allow_partial_search_results=true", searchSchema, {
      ...{ query: queryOf({ arms, filters }), size: most, track_total_hits: Math.max(1, most) },
      ...{ sort: [{ _score: "desc" }, { key: "asc" }], timeout: longestSearch },
      ...{ _source: false, stored_fields: "_none_", docvalue_fields: factColumns },
    });
    const { total, hits } = answer.hits;
    return {
      matches: hits.map(({ _score, fields }) => matchOf(_score, fields)),
      total: total.value,
      isExact: total.relation === "eq",
      isPartial: answer.timed_out || answer._shards.successful < answer._shards.total,
    };
  }

  async configurations(): Promise<string[]> {
    const names = {
      terms: { field: "text_search_config", size: mostConfigurations, order: { _key: "asc" } },
    };
    const { aggregations } = await this.#ask("/_search", namesSchema, { size: 0, aggs: { names } });
    return aggregations.names.buckets.map(({ key }) => key);
  }

  /** Two slips are found if the first letter is right, or has changed places with the second one. */
  async wordsLike(word: string): Promise<WrittenWord[]> {
    if (word === "") return [];
    const term = {
      ...{ field: "written", suggest_mode: "always", sort: "frequency", size: mostWords },
      ...{ max_edits: 2, prefix_length: 0, min_word_length: 1, accuracy: 0.01, max_term_freq: 0.999999 },
    };
    const [first = "", second = "", ...rest] = word;
    const swapped = [second, first, ...rest].join("");
    const { suggest } = await this.#ask("/_search", suggestSchema, {
      suggest: { asTyped: { text: word, term }, swapped: { text: swapped, term } },
    });
    const near = [...suggest.asTyped, ...suggest.swapped].flatMap(({ options }) => options);
    const words = [word, ...near.map(({ text }) => text).filter((text) => slipsBetween(word, text) <= 2)];
    // The frequencies of suggestions count deleted pages, too.
    const filters = Object.fromEntries(words.map((one) => [one, { term: { written: one } }]));
    const { aggregations } = await this.#ask("/_search", countsSchema, {
      ...{ size: 0, aggs: { pages: { filters: { filters } } } },
    });
    return Object.entries(aggregations.pages.buckets)
      .map(([text, { doc_count }]) => ({ word: text, pages: doc_count }))
      .filter(({ pages }) => pages > 0)
      .sort((a, b) => b.pages - a.pages || (a.word < b.word ? -1 : 1));
  }

  texts: TextsElsewhere = async (pages) =>
    await storedTexts(pages, async (path, body) => await this.#ask(path, z.unknown(), JSON.parse(body)));

  /** No body: a question by its address only. */
  async #ask<T>(path: string | null, schema: z.ZodType<T>, body: unknown): Promise<T> {
    const answer = await this.#http
      .ask(body === null ? "GET" : "POST", path, body === null ? null : JSON.stringify(body))
      .catch((error: Error) => Promise.reject(new EngineAway(causeWords(error), { cause: error })));
    if (answer.status >= 300) throw new EngineAway(statusWords(answer));
    const read = schema.safeParse(answer.body);
    if (!read.success)
      throw new EngineAway(`it does not answer as OpenSearch does: ${read.error.issues[0]?.message}`);
    return read.data;
  }
}

const one = <T extends z.ZodType>(value: T) => z.tuple([value]).transform(([only]) => only as z.output<T>);
const maybe = <T extends z.ZodType>(value: T) => one(value).nullable().default(null);
const date = one(z.coerce.number().transform((ms) => new Date(ms)));

const factsSchema = z.object({
  key: one(z.string().regex(/^[0-9a-f]{32}$/)),
  ...{ url: one(z.string()), host: one(z.string()), text_search_config: one(z.string()) },
  ...{ language: maybe(z.string()), country: maybe(z.string()), crawler: maybe(z.string()) },
  ...{ text_group: maybe(z.string()), is_copy: one(z.boolean()), linking_hosts: one(z.number()) },
  ...{ page_rank: maybe(z.number()), uses: z.array(z.string()).default([]) },
  ...{ published_at: date.nullable().default(null), fetched_at: date },
});

const searchSchema = z.object({
  timed_out: z.boolean(),
  _shards: z.object({ total: z.number(), successful: z.number() }),
  hits: z.object({
    total: z.object({ value: z.number(), relation: z.string() }),
    hits: z.array(z.object({ _score: z.number(), fields: factsSchema })),
  }),
});

const statsSchema = z.object({
  _all: z.object({
    primaries: z.object({
      docs: z.object({ count: z.number() }),
      store: z.object({ size_in_bytes: z.number() }),
    }),
  }),
});

const cursorSchema = z.object({
  docs: one(z.object({ _source: keptSchema.nullable().default(null) })).transform((doc) => doc),
});

const namesSchema = z.object({
  aggregations: z.object({ names: z.object({ buckets: z.array(z.object({ key: z.string() })) }) }),
});

const suggestions = z.array(z.object({ options: z.array(z.object({ text: z.string() })) }));

const suggestSchema = z.object({ suggest: z.object({ asTyped: suggestions, swapped: suggestions }) });

const countsSchema = z.object({
  aggregations: z.object({
    pages: z.object({ buckets: z.record(z.string(), z.object({ doc_count: z.number() })) }),
  }),
});

function matchOf(score: number, facts: z.infer<typeof factsSchema>): EngineMatch {
  return {
    ...{ ...keyOfDocument(facts.key), url: facts.url, host: facts.host, score },
    ...{ textSearchConfig: facts.text_search_config, language: facts.language, country: facts.country },
    ...{ crawler: facts.crawler, publishedAt: facts.published_at, fetchedAt: facts.fetched_at },
    uses: Object.fromEntries(facts.uses.map((use) => use.split("="))) as UseAnswers,
    ...{ textGroup: facts.text_group, isCopy: facts.is_copy },
    ...{ linkingHosts: facts.linking_hosts, pageRank: facts.page_rank },
  };
}
