/** Keeps the index in memory level with the database: builds it from all pages, then follows those that change. */
import { randomInt } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type { Pool } from "pg";
import type { IndexAnswer, IndexQuestion } from "./index-answer.ts";
import {
  countPages,
  currentSnapshot,
  type PageKey,
  readAllPages,
  readCountries,
  readCountriesOf,
  readCrawlerNames,
  readPages,
  readTouched,
  readUses,
} from "./index-page-reads.ts";
import { type IndexedPage, MemoryIndex } from "./memory-index.ts";
import { searchIndex } from "./search-index.ts";

/** Changed pages read at once. */
const pagesRead = 500;

/** Hosts whose countries are read in one turn. */
const hostsRead = 5000;

/** After joining for this long, the event loop runs other work. */
const sliceMs = 8;

interface BuildProgress {
  readonly pages: number;
  readonly ofPages: number;
}

export class DatabaseIndex {
  readonly #pool: Pool;
  readonly #mostBytes: number;
  readonly #usedBytes: () => number;
  readonly index = new MemoryIndex(randomInt(2 ** 32));
  #snapshot = "";
  #crawlers: ReadonlyMap<number, string> = new Map();
  /** The last host whose country was read; null if the first is next. */
  #lastHost: string | null = null;

  /** `usedBytes`: memory of the process. */
  constructor(pool: Pool, { mostBytes, usedBytes }: { readonly mostBytes: number; usedBytes(): number }) {
    this.#pool = pool;
    this.#mostBytes = mostBytes;
    this.#usedBytes = usedBytes;
  }

  /** Throws OutOfRoom where the pages need more memory than allowed. */
  async build(onProgress: (progress: BuildProgress) => void = () => {}): Promise<void> {
    const pool = this.#pool;
    this.#snapshot = await currentSnapshot(pool);
    this.#crawlers = await readCrawlerNames(pool);
    const expected = await countPages(pool);
    let pages = 0;
    let turnAtMs = performance.now() + sliceMs;
    await readAllPages(pool, {
      visit: (page) => this.index.add(page),
      between: (more) => {
        pages += more;
        if (performance.now() < turnAtMs) return null;
        this.#refuseTooMuch(pages);
        onProgress({ pages, ofPages: Math.max(expected, pages) });
        turnAtMs = performance.now() + sliceMs;
        return turn();
      },
    });
    this.index.seal();
    this.#refuseTooMuch(pages);
    await this.#readNewUses();
    do await this.readSomeCountries();
    while (this.#lastHost !== null);
  }

  /** Adds what changed since the last time and returns how many pages. Searches may run in between. */
  async catchUp(): Promise<number> {
    const { snapshot, keys } = await readTouched(this.#pool, this.#snapshot);
    const distinct = [...new Map(keys.map((key) => [`${key.hostHash}/${key.urlHash}`, key])).values()];
    for (let at = 0; at < distinct.length; at += pagesRead)
      await this.#renew(distinct.slice(at, at + pagesRead));
    this.#snapshot = snapshot;
    if (distinct.length > 0) await this.#tidy();
    this.#refuseTooMuch(this.index.pages);
    return distinct.length;
  }

  search(question: IndexQuestion): IndexAnswer | null {
    return searchIndex(this.index, question, this.#crawlers);
  }

  /** Reads the countries of the next hosts, round after round, and once a round the names of crawlers. */
  async readSomeCountries(): Promise<void> {
    const rows = await readCountries(this.#pool, this.#lastHost, hostsRead);
    this.#setCountries(rows);
    this.#lastHost = rows.length < hostsRead ? null : rows.at(-1)!.hostHash;
    if (this.#lastHost === null) this.#crawlers = await readCrawlerNames(this.#pool);
  }

  async #renew(keys: readonly PageKey[]): Promise<void> {
    const pages = await readPages(this.#pool, keys);
    const isNew = ({ host }: IndexedPage) => this.index.hosts.find(host) === 0;
    const newHosts = [...new Set(pages.filter(isNew).map(({ hostHash }) => String(hostHash)))];
    for (const { hostHash, urlHash } of keys) this.index.remove(hostHash, urlHash);
    for (const page of pages) this.index.add(page);
    this.index.seal();
    await this.#readNewUses();
    if (newHosts.length > 0) this.#setCountries(await readCountriesOf(this.#pool, newHosts));
    await turn();
  }

  async #readNewUses(): Promise<void> {
    const { newSets, uses } = this.index;
    if (newSets.size === 0) return;
    const read = await readUses(this.#pool, [...newSets]);
    for (const set of newSets) uses.set(set, read.get(set) ?? {});
    newSets.clear();
  }

  #setCountries(rows: readonly { readonly host: string; readonly country: string | null }[]): void {
    const { hosts, countries } = this.index;
    for (const { host, country } of rows) {
      const number = hosts.find(host);
      if (number !== 0) hosts.setCountry(number, countries.add(country));
    }
  }

  async #tidy(): Promise<void> {
    const joining = this.index.joinSome();
    let turnAtMs = performance.now() + sliceMs;
    while (joining.next().done !== true) {
      if (performance.now() < turnAtMs) continue;
      await turn();
      turnAtMs = performance.now() + sliceMs;
    }
  }

  #refuseTooMuch(pages: number): void {
    const used = this.#usedBytes();
    if (used > this.#mostBytes) throw new OutOfRoom(pages, used, this.#mostBytes);
  }
}

/** The index needs more memory than allowed: the database answers from then on. */
export class OutOfRoom extends Error {
  constructor(pages: number, usedBytes: number, mostBytes: number) {
    const [used, most] = [usedBytes, mostBytes].map((bytes) => `${Math.round(bytes / 2 ** 20)} MB`);
    super(`${pages} pages take ${used} of memory, and it may have ${most} (search.indexMegabytes)`);
  }
}
