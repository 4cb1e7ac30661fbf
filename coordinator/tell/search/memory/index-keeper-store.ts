/**
 * Decides whether there is an index in memory: as the settings say, or where there are enough pages and the machine
 * has room.
 */
import { freemem } from "node:os";
import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { IndexAnswer, IndexQuestion, IndexState, SearchIndex } from "./index-answer.ts";
import { IndexClient } from "./index-client.ts";
import { countPages } from "./index-page-reads.ts";

/** How often it checks whether there are enough pages now. */
const lookMs = 60_000;

/** With fewer pages a process of its own (about 80 MB) is not worth it: the database is as fast. */
const leastPages = 20_000;

/** Unless the settings say otherwise, it may use this share of the memory available when it starts. */
const shareOfAvailable = 0.5;

export interface IndexKeeperOptions {
  readonly pool: Pool;
  readonly databaseUrl: string;
  readonly settings: SearchSettings;
  readonly log: Log;
}

interface SearchSettings {
  readonly index: "memory" | "database" | null;
  readonly indexMegabytes: number | null;
}

export class IndexKeeper implements SearchIndex {
  readonly #options: IndexKeeperOptions;
  #client: IndexClient | null = null;
  #why = "it has not been looked yet whether it is worth it";
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: IndexKeeperOptions) {
    this.#options = options;
  }

  /** Does not wait: the database answers until the index is ready. */
  start(): void {
    if (this.#options.settings.index === "database") {
      this.#why = 'search.index is "database"';
      return;
    }
    this.#timer = setInterval(() => void this.#consider(), lookMs);
    this.#timer.unref();
    void this.#consider();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#client?.stop();
  }

  state(): IndexState {
    return this.#client?.state() ?? { type: "off", why: this.#why };
  }

  async ask(question: IndexQuestion): Promise<IndexAnswer | null> {
    return (await this.#client?.ask(question)) ?? null;
  }

  async #consider(): Promise<void> {
    const { pool, databaseUrl, settings, log } = this.#options;
    if (this.#client !== null) return;
    try {
      const pages = settings.index === "memory" ? leastPages : await countPages(pool);
      if (this.#stopped || this.#client !== null) return;
      if (pages < leastPages) {
        this.#why = `there are fewer than ${leastPages} pages`;
        return;
      }
      const mostBytes =
        settings.indexMegabytes === null ? shareOfAvailable * freemem() : settings.indexMegabytes * 2 ** 20;
      this.#client = new IndexClient({ databaseUrl, mostBytes, log });
      this.#client.start();
    } catch (error) {
      // The database does not answer, which others report. The next check is in a minute.
      log.debug({ error: String(error) }, "it cannot be told whether an index in memory is worth it");
    }
  }
}
