/** Opens an engine when the first question comes: a command that does not search needs none. */
import type { TextsElsewhere } from "../../../crawl/changes/page-text-reads.ts";
import type { EngineState, SearchEngine } from "./search-engine.ts";

interface OpenEngine<Engine> {
  readonly engine: Engine;
  close(): void | Promise<void>;
}

export class EngineOnDemand<Engine extends SearchEngine> implements SearchEngine {
  readonly #open: () => Promise<OpenEngine<Engine>>;
  #opening: Promise<OpenEngine<Engine>> | null = null;
  #opened: Engine | null = null;

  constructor(open: () => Promise<OpenEngine<Engine>>) {
    this.#open = open;
  }

  async opened(): Promise<Engine> {
    this.#opening ??= this.#open();
    this.#opened = (await this.#opening).engine;
    return this.#opened;
  }

  async close(): Promise<void> {
    await (await this.#opening?.catch(() => null))?.close();
  }

  state(): EngineState {
    return this.#opened?.state() ?? { type: "building", pages: 0, ofPages: 0 };
  }

  search: SearchEngine["search"] = async (question) => await (await this.opened()).search(question);
  configurations: SearchEngine["configurations"] = async () => await (await this.opened()).configurations();
  texts: TextsElsewhere = async (pages) => (await (await this.opened()).texts?.(pages)) ?? [];
  wordsLike: SearchEngine["wordsLike"] = async (word) => await (await this.opened()).wordsLike(word);
}
