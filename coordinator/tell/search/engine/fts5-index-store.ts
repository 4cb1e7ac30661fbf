/**
 * The index of the search as an SQLite file: table `facts` has what filters and ranking need of each page, and the FTS5
 * table `terms` its terms by field, without the text itself. What is missing in the file or is damaged comes back from the
 * database, so a file that cannot be used is thrown away.
 */
import { createHash } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { setImmediate as othersTurn } from "node:timers/promises";
import type { HostHash, UrlHash } from "#core/ids";
import { wordsIn } from "#core/words/words";
import type { UseAnswers } from "#protocol/preferences";
import { slipsBetween } from "../edit-distance.ts";
import {
  type ExportState,
  type ExportTarget,
  exportStateSchema,
  type Written,
} from "../export/export-index.ts";
import type { ExportedDocument, Operation } from "../export/export-operation.ts";
import { documentTerms, termsEdition, termWeights } from "./document-terms.ts";
import { filterSql, matchOf } from "./fts5-query.ts";
import type { EngineAnswer, EngineMatch, EngineQuestion, WrittenWord } from "./search-engine.ts";
import { openSqlite, type Sqlite, type SqliteValue } from "./sqlite-store.ts";

/** A file of another format is thrown away. */
const fileFormat = 1;

/** Terms are separated by blanks only, and the tokenizer leaves all that is not ASCII as it is. See fts5-query.ts for `=`. */
const tokenizer = `tokenize = "ascii tokenchars '='"`;

const schema = `
  create table facts (
    number integer primary key,
    id text not null unique,
    version integer not null,
    change integer not null,
    digest text not null,
    url text not null,
    host text not null,
    config text not null,
    language text,
    country text,
    crawler text,
    published integer,
    fetched integer not null,
    content_type text not null,
    text_group text,
    is_copy integer not null,
    linking_hosts integer not null,
    page_rank real,
    uses text not null
  );
  create index facts_config on facts (config);
  create virtual table terms using fts5 (
    title, headings, anchors, address, text, config, content = '', contentless_delete = 1, ${tokenizer}
  );
  create virtual table written using fts5 (word, content = '', contentless_delete = 1, detail = none, ${tokenizer});
  create virtual table vocabulary using fts5vocab (written, row);
  create table kept (only_row integer primary key check (only_row = 1), state text not null, was_complete integer not null);
  pragma user_version = ${fileFormat};`;

/** Of title, headings, anchors, address, text and configuration, in BM25. */
const weights = [...Object.values(termWeights), 0].join();

/** A search that takes longer ends with the best that it has found. */
const longestMs = 1000;

/** Of more matches than this, only those with the words in their headings or links are ranked, where these suffice. */
const mostRanked = 10_000;

/** Counting more would take as long as ranking a few. */
const mostCounted = 100_000;

/** Questions wait no longer than this while pages are written. */
const turnMs = 20;

const removedAtOnce = 500;
const mostWords = 100;

export class Fts5Index implements ExportTarget {
  readonly #file: Sqlite;
  #pages: number;
  #deadlineMs = 0;
  #rowsLooked = 0;
  #isLate = false;

  private constructor(file: Sqlite) {
    this.#file = file;
    this.#pages = file.all<{ pages: number }>("select count(*) as pages from facts")[0]!.pages;
    file.define("in_time", () => this.#inTime());
  }

  /** `path` may be ":memory:". */
  static async open(path: string): Promise<Fts5Index> {
    if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const file = await openSqlite(path).catch(() => null);
    try {
      const [version] = file?.all<{ user_version: number }>("pragma user_version") ?? [];
      if (file !== null && version?.user_version === fileFormat) return new Fts5Index(file);
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
    file?.close();
    if (path !== ":memory:") removeIndex(path);
    const made = await openSqlite(path).catch((error: Error) => {
      throw new Error(`the index ${path} cannot be opened: ${error.message}`, { cause: error });
    });
    made.exec(`begin; ${schema} commit`);
    return new Fts5Index(made);
  }

  get pages(): number {
    return this.#pages;
  }

  get bytes(): number {
    const [size] = this.#file.all<{ bytes: number }>(
      "select page_count * page_size as bytes from pragma_page_count, pragma_page_size",
    );
    return size!.bytes;
  }

  /** Whether it has once had all pages. */
  get wasComplete(): boolean {
    return this.#kept()?.was_complete === 1;
  }

  close(): void {
    this.#file.close();
  }

  /** Removes all pages and the state. */
  clear(): void {
    this.#inTransaction(() => {
      this.#file.exec(
        "insert into terms (terms) values ('delete-all'); insert into written (written) values ('delete-all')",
      );
      this.#file.exec("delete from facts; delete from kept");
    });
    this.#pages = 0;
  }

  async state(): Promise<ExportState | string | null> {
    const kept = this.#kept();
    if (kept === null) return null;
    const read = exportStateSchema.safeParse(JSON.parse(kept.state));
    return read.success ? read.data : "the state of the index is of another version";
  }

  #kept(): { readonly state: string; readonly was_complete: number } | null {
    return this.#file.all<{ state: string; was_complete: number }>("select * from kept")[0] ?? null;
  }

  async keep(state: ExportState): Promise<void> {
    this.#file.run(
      `insert into kept values (1, ?, ?)
       on conflict do update set state = excluded.state, was_complete = max(was_complete, excluded.was_complete)`,
      [JSON.stringify(state), state.full === null ? 1 : 0],
    );
  }

  async beginFull(): Promise<void> {}

  async endFull(change: number): Promise<number> {
    for (let removed = 0; ; await othersTurn()) {
      const old = this.#file.all<{ number: number }>("select number from facts where change < ? limit ?", [
        change,
        removedAtOnce,
      ]);
      this.#inTransaction(() => {
        for (const { number } of old) this.#remove(number);
      });
      removed += old.length;
      if (old.length < removedAtOnce) return removed;
    }
  }

  /** Searches between two pages see those that are written so far. */
  async write(operations: readonly Operation[]): Promise<Written> {
    const written = { indexed: 0, deleted: 0, alreadyThere: 0, rejected: 0 };
    const pagesBefore = this.#pages;
    this.#file.exec("begin");
    try {
      let turnEndsMs = performance.now() + turnMs;
      for (const operation of operations) {
        written[await this.#writeOne(operation)] += 1;
        if (performance.now() < turnEndsMs) continue;
        await othersTurn();
        turnEndsMs = performance.now() + turnMs;
      }
      this.#file.exec("commit");
      return written;
    } catch (error) {
      this.#pages = pagesBefore;
      this.#file.exec("rollback");
      throw error;
    }
  }

  async #writeOne(operation: Operation): Promise<keyof Written> {
    const { op, id, version } = operation;
    const [before] = this.#file.all<{ number: number; version: number; digest: string }>(
      "select number, version, digest from facts where id = ?",
      [id],
    );
    if (before !== undefined && before.version > version) return "alreadyThere";
    if (op === "delete") {
      if (before !== undefined) this.#remove(before.number);
      return "deleted";
    }
    const { document } = operation;
    const digest = digestOf(document);
    // The facts change without a new version, too: links and ranks.
    const number = this.#writeFacts(operation, digest);
    if (before === undefined) this.#pages += 1;
    if (before?.digest === digest) return before.version === version ? "alreadyThere" : "indexed";
    if (before !== undefined) this.#removeTerms(number);
    const { title, headings, anchors, address, text } = await documentTerms(document);
    const config = `=${document.text_search_config}`;
    this.#file.run(
      "insert into terms (rowid, title, headings, anchors, address, text, config) values (?, ?, ?, ?, ?, ?, ?)",
      [number, title, headings, anchors, address, text, config],
    );
    this.#file.run("insert into written (rowid, word) values (?, ?)", [number, writtenWords(document)]);
    return "indexed";
  }

  #writeFacts({ id, version, document }: Operation & { op: "index" }, digest: string): number {
    const values = { id, version, digest, ...factsOf(document) } satisfies Record<string, SqliteValue>;
    const names = Object.keys(values);
    const [row] = this.#file.all<{ number: number }>(
      `insert into facts (${names.join(", ")}) values (${names.map(() => "?").join(", ")})
       on conflict (id) do update set ${names.map((name) => `${name} = excluded.${name}`).join(", ")}
       returning number`,
      Object.values(values),
    );
    return row!.number;
  }

  #remove(number: number): void {
    this.#removeTerms(number);
    this.#file.run("delete from facts where number = ?", [number]);
    this.#pages -= 1;
  }

  #removeTerms(number: number): void {
    this.#file.run("delete from terms where rowid = ?", [number]);
    this.#file.run("delete from written where rowid = ?", [number]);
  }

  #inTransaction(work: () => void): void {
    this.#file.exec("begin");
    try {
      work();
      this.#file.exec("commit");
    } catch (error) {
      this.#file.exec("rollback");
      throw error;
    }
  }

  /** A page has one configuration, so the matches of two arms are different pages. */
  search({ arms, filters, most }: EngineQuestion): EngineAnswer {
    [this.#deadlineMs, this.#rowsLooked, this.#isLate] = [performance.now() + longestMs, 0, false];
    const filter = filterSql(filters);
    const facts = filter.sql === "" ? "" : "cross join facts f on f.number = terms.rowid";
    const where = `from terms ${facts} where terms match ? ${filter.sql}`;
    const count = (expression: string, atMost: number) =>
      this.#file.all<{ pages: number }>(`select count(*) as pages from (select 1 ${where} limit ?)`, [
        ...[expression, ...filter.values],
        atMost,
      ])[0]!.pages;
    let [total, isExact] = [0, true];
    const best: { readonly number: number; readonly score: number }[] = [];
    for (const arm of arms) {
      const match = matchOf(arm);
      if (match === null) continue;
      const pages = count(match, mostCounted);
      total += pages;
      isExact &&= pages < mostCounted;
      const inHeads = pages > mostRanked ? matchOf(arm, true)! : match;
      const ranked = pages > mostRanked && count(inHeads, most) >= most ? inHeads : match;
      best.push(
        ...this.#file.all<(typeof best)[number]>(
          `select terms.rowid as number, -bm25(terms, ${weights}) as score ${where} and in_time()
           order by score desc limit ?`,
          [ranked, ...filter.values, most],
        ),
      );
    }
    const scores = new Map(best.map(({ number, score }) => [number, score]));
    const matches = this.#file
      .all<FactsRow>("select * from facts where number in (select value from json_each(?))", [
        JSON.stringify([...scores.keys()]),
      ])
      .map((row) => ({ id: row.id, ...matchOfRow(row, scores.get(row.number)!) }))
      .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
      .slice(0, most)
      .map(({ id: _, ...match }) => match);
    return { matches, total, isExact, isPartial: this.#isLate };
  }

  /** The time is looked at now and then only. Matches that come later are left out. */
  #inTime(): number {
    this.#rowsLooked += 1;
    if (!this.#isLate && this.#rowsLooked % 64 === 0) this.#isLate = performance.now() > this.#deadlineMs;
    return this.#isLate ? 0 : 1;
  }

  configurations(): string[] {
    return this.#file
      .all<{ config: string }>(
        `with recursive each (config) as (
           select min(config) from facts
           union all
           select (select min(f.config) from facts f where f.config > each.config) from each where each.config is not null
         )
         select config from each where config is not null`,
      )
      .map(({ config }) => config);
  }

  /** People seldom mistype the first letter, so only words are looked at that begin with it, or with the second one. */
  wordsLike(word: string): WrittenWord[] {
    const letters = [...word];
    const firsts = [...new Set(letters.slice(0, 2))];
    const near = firsts.flatMap((first) =>
      this.#file.all<WrittenWord>(
        `select term as word, doc as pages from vocabulary
         where term >= ? and term < ? and length(term) between ? and ?`,
        [first, `${first}\u{10ffff}`, letters.length - 2, letters.length + 2],
      ),
    );
    return near
      .filter((one) => slipsBetween(word, one.word) <= 2)
      .sort((a, b) => b.pages - a.pages || (a.word < b.word ? -1 : 1))
      .slice(0, mostWords);
  }
}

/** For files that turn out to be damaged. */
export function removeIndex(path: string): void {
  for (const end of ["", "-wal", "-shm", "-journal"]) rmSync(path + end, { force: true });
}

export const isDamage = (error: unknown): boolean =>
  error instanceof Error && /malformed|not a database|corrupt/i.test(error.message);

/** Of what the terms are made of. */
function digestOf(document: ExportedDocument): string {
  const { title, description, headings, anchors, url, text, unquoted, text_search_config } = document;
  const parts = [title, description, headings, anchors, url, text, unquoted, text_search_config];
  return createHash("sha1")
    .update(JSON.stringify([termsEdition, ...parts]))
    .digest("base64");
}

const writtenWords = ({ title, headings }: ExportedDocument): string =>
  Array.from(wordsIn([title, ...headings].join("\n")), ({ word }) => word).join(" ");

function factsOf(document: ExportedDocument) {
  return {
    change: document.change,
    url: document.url,
    host: document.host,
    config: document.text_search_config,
    language: document.language,
    country: document.country,
    crawler: document.crawler,
    published: document.published_at === null ? null : Date.parse(document.published_at),
    fetched: Date.parse(document.fetched_at),
    content_type: document.content_type,
    text_group: document.text_group,
    is_copy: document.is_copy ? 1 : 0,
    linking_hosts: document.linking_hosts,
    page_rank: document.page_rank,
    uses: JSON.stringify(Object.fromEntries(document.uses.map((use) => use.split("=")))),
  };
}

type FactsRow = ReturnType<typeof factsOf> & { readonly number: number; readonly id: string };

function matchOfRow(row: FactsRow, score: number): EngineMatch {
  const hash = (from: number) => BigInt.asIntN(64, BigInt(`0x${row.id.slice(from, from + 16)}`)).toString();
  return {
    hostHash: hash(0) as HostHash,
    urlHash: hash(16) as UrlHash,
    url: row.url,
    host: row.host,
    score,
    textSearchConfig: row.config,
    language: row.language,
    country: row.country,
    crawler: row.crawler,
    publishedAt: row.published === null ? null : new Date(row.published),
    fetchedAt: new Date(row.fetched),
    uses: JSON.parse(row.uses) as UseAnswers,
    textGroup: row.text_group,
    isCopy: row.is_copy === 1,
    linkingHosts: row.linking_hosts,
    pageRank: row.page_rank,
  };
}
