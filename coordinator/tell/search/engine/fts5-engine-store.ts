/** The index in a file together with the database that it follows: what the process of the index runs, and what tests open. */
import type { Pool } from "pg";
import { ExportError } from "#core/errors";
import { exportIndex, type TextPorts } from "../export/export-index.ts";
import { createExportReads } from "../export/export-reads.ts";
import { refetching } from "../export/text-upkeep-store.ts";
import { Fts5Index } from "./fts5-index-store.ts";
import type { EngineState, SearchEngine } from "./search-engine.ts";

interface CatchUpOptions {
  readonly full?: boolean;
  /** If given, pages without a text are fetched again, and it is called with their number. */
  readonly onLost?: (pages: number) => void;
}

/** `path` may be ":memory:". */
export async function openFts5(pool: Pool, path: string): Promise<Fts5Engine> {
  return new Fts5Engine(pool, await Fts5Index.open(path));
}

export class Fts5Engine implements SearchEngine {
  readonly #pool: Pool;
  readonly #index: Fts5Index;
  #progress = { pages: 0, ofPages: 0 };
  /** Of the last time that it had all changes. */
  #levelMs: number | null = null;

  constructor(pool: Pool, index: Fts5Index) {
    this.#pool = pool;
    this.#index = index;
  }

  /** Reads what has changed in the database, or all pages. */
  async catchUp({ full = false, onLost }: CatchUpOptions = {}): Promise<void> {
    if (onLost === undefined) return await this.#catchUp(full);
    await refetching({ pool: this.#pool, onLost }, async (fetchAgain) => {
      await this.#catchUp(full, { onLost: fetchAgain });
    });
  }

  async #catchUp(full: boolean, texts: TextPorts = {}): Promise<void> {
    const ports = {
      reads: createExportReads(this.#pool),
      ...{ target: this.#index, texts },
      nowMs: () => performance.now(),
      onProgress: ({ done, expected }: { readonly done: number; readonly expected: number }) => {
        this.#progress = { pages: done, ofPages: Math.max(done, expected) };
      },
      onLevel: (atMs: number) => {
        this.#levelMs = atMs;
      },
    };
    try {
      await exportIndex(ports, { full });
    } catch (error) {
      if (!(error instanceof ExportError)) throw error;
      // The file is of another database, or of a state to which this one went back.
      this.#index.clear();
      await exportIndex(ports);
    }
  }

  state(): EngineState {
    const { pages, bytes, wasComplete } = this.#index;
    if (!wasComplete) return { type: "building", ...this.#progress };
    const secondsBehind = this.#levelMs === null ? 0 : (performance.now() - this.#levelMs) / 1000;
    return { type: "ready", pages, bytes, secondsBehind };
  }

  search: SearchEngine["search"] = async (question) => this.#index.search(question);
  configurations: SearchEngine["configurations"] = async () => this.#index.configurations();
  wordsLike: SearchEngine["wordsLike"] = async (word) => this.#index.wordsLike(word);

  close(): void {
    this.#index.close();
  }
}
