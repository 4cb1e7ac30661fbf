/**
 * A coordinator's side of OpenSearch: asks it for searches, keeps looking how it is, and where this coordinator leads,
 * sends what has changed in the database. While the engine is away, crawling goes on and documents wait.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { howMany } from "#core/format";
import type { Log } from "#core/log";
import { timerMs } from "#core/timer-ms";
import type { TextsElsewhere } from "../../../crawl/changes/page-text-reads.ts";
import type { DatabaseFault } from "../../../database/database-watch.ts";
import { exportIndex, type TextPorts } from "../export/export-index.ts";
import { createExportReads } from "../export/export-reads.ts";
import { follow } from "../export/follow-scheduler.ts";
import { alone } from "../export/one-export-store.ts";
import { OpenSearchIndex } from "../export/opensearch-target.ts";
import { dropTexts, refetching } from "../export/text-upkeep-store.ts";
import { OpenSearchEngine } from "./opensearch-engine.ts";
import type { OpenSearchPlace } from "./opensearch-http-client.ts";
import {
  type EngineAnswer,
  EngineAway,
  type EngineQuestion,
  type EngineState,
  type SearchEngine,
  type WrittenWord,
} from "./search-engine.ts";

const lookMs = 2000;

interface OpenSearchClientOptions {
  readonly pool: Pool;
  readonly schema: string;
  readonly place: OpenSearchPlace;
  /** Whether this coordinator sends what has changed. */
  readonly leads: () => boolean;
  readonly log: Log;
}

/** Documents that the engine does not have yet. */
interface WaitingDocuments {
  /** Of changes; after a hundred thousand it is not counted further. */
  readonly changes: number;
  /** Of the oldest; null if there is none. */
  readonly since: Date | null;
  /** Left out since this coordinator's start because the engine refuses them. */
  readonly refused: number;
}

export class OpenSearchClient implements SearchEngine {
  readonly #options: OpenSearchClientOptions;
  readonly #reads: ReturnType<typeof createExportReads>;
  readonly #engine: OpenSearchEngine;
  readonly #target: OpenSearchIndex;
  readonly #stopping = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #state: EngineState = { type: "away", why: "it was not asked yet" };
  #hasLooked = false;
  #cursor: number | null = null;
  #trouble: string | null = null;
  #refused = 0;
  #fault: DatabaseFault | null = null;

  constructor(options: OpenSearchClientOptions) {
    this.#options = options;
    this.#reads = createExportReads(options.pool);
    this.#engine = new OpenSearchEngine(options.place);
    this.#target = new OpenSearchIndex({
      ...options.place,
      pause: async (ms) => await delay(timerMs(ms), undefined, { signal: this.#stopping.signal }),
      random: Math.random,
      onTrouble: (words) => this.#tell(words),
      onRefused: (words) => options.log.warn({ words }, "the search engine refuses a document"),
    });
  }

  start(): void {
    const { signal } = this.#stopping;
    this.#running = Promise.all([
      follow({
        catchUp: async (options) => await this.#send(options),
        onTrouble: (error) => this.#tell(error?.message ?? null),
        signal,
      }),
      this.#keepLooking(),
    ]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#engine.close(), this.#target.close(), this.#running]);
  }

  state(): EngineState {
    return this.#state;
  }

  async search(question: EngineQuestion): Promise<EngineAnswer> {
    return await this.#engine.search(question);
  }

  readonly texts: TextsElsewhere = async (pages) => {
    // Results would wait for it.
    if (this.#hasLooked && this.#state.type === "away") throw new EngineAway(this.#state.why);
    return await this.#engine.texts(pages);
  };

  async configurations(): Promise<readonly string[]> {
    return await this.#engine.configurations();
  }

  async wordsLike(word: string): Promise<readonly WrittenWord[]> {
    return await this.#engine.wordsLike(word);
  }

  /** As of the last look. */
  fault(): DatabaseFault | null {
    return this.#fault;
  }

  /** What keeps documents from being sent, if this coordinator sends them. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Null as long as the engine has not said what it has. */
  async waiting(): Promise<WaitingDocuments | null> {
    if (this.#cursor === null) return null;
    const behind = await this.#reads.behind(this.#cursor);
    return { ...behind, refused: this.#refused };
  }

  async #send({ full }: { readonly full: boolean }): Promise<void> {
    const { pool, schema, leads, log } = this.#options;
    if (!leads()) return;
    const ports = {
      ...{ reads: this.#reads, target: this.#target, nowMs: () => performance.now() },
      signal: this.#stopping.signal,
      onFull: (why: string) => log.info({ why }, "all pages are sent to the search engine"),
    };
    const elsewhere = this.#target.documents;
    const drop: TextPorts["drop"] = async (pages) => await dropTexts(pool, pages);
    const onLost = (pages: number) =>
      log.warn({ pages }, "texts that the search engine lost are fetched again");
    const sent = await alone(
      pool,
      { schema, place: this.#target.name },
      async () =>
        await refetching({ pool, onLost }, async (fetchAgain) => {
          return await exportIndex({ ...ports, texts: { elsewhere, drop, onLost: fetchAgain } }, { full });
        }),
    );
    this.#refused += sent?.rejected ?? 0;
    if (this.#trouble !== null) this.#tell(null);
  }

  /** One line for each trouble, since it is tried again and again. */
  #tell(trouble: string | null): void {
    if (trouble === this.#trouble) return;
    this.#trouble = trouble;
    if (trouble === null) this.#options.log.info({}, "the search engine takes documents again");
    else this.#options.log.warn({ why: trouble }, "documents wait for the search engine");
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#state = await this.#look().catch((error: Error) => ({
        type: "away" as const,
        why: error instanceof EngineAway ? error.message : `the database does not answer: ${error.message}`,
      }));
      this.#fault = await this.#faultNow().catch(() => this.#fault);
      this.#hasLooked = true;
      await delay(lookMs, undefined, { signal }).catch(() => {});
    }
  }

  async #faultNow(): Promise<DatabaseFault | null> {
    const { changes, since } = (await this.waiting()) ?? { changes: 0, since: null };
    const why = this.#state.type === "away" ? this.#state.why : this.#trouble;
    if (since === null && why === null) return null;
    const words = `${howMany(changes, "change")} ${changes === 1 ? "waits" : "wait"} for the search engine`;
    // What began as an engine that is away becomes changes that wait.
    const begun = since ?? this.#fault?.since ?? new Date();
    return { words: why === null ? words : `${words}: ${why}`, since: begun };
  }

  async #look(): Promise<EngineState> {
    const { pages, bytes, export: kept } = await this.#engine.look();
    if (kept === null) return { type: "building", pages, ofPages: await this.#reads.expectedPages() };
    this.#cursor = kept.cursor;
    if (!kept.wasComplete) {
      const ofPages = Math.max(pages, await this.#reads.expectedPages());
      return { type: "building", pages, ofPages };
    }
    const { since } = await this.#reads.behind(kept.cursor);
    const secondsBehind = since === null ? 0 : Math.max(0, (Date.now() - since.getTime()) / 1000);
    return { type: "ready", pages, bytes, secondsBehind };
  }
}
