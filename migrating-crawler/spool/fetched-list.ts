/**
 * Records every request and measurement for partners who receive complaints, one JSON line each in `crawler/fetched/`. Full
 * files are compressed, and lines that exceed the partner's age or size limit are removed, oldest first. The list can be read
 * while no crawler is running.
 */
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createGunzip, gzip } from "node:zlib";
import { z } from "zod";
import { jsonOf } from "../core/json.ts";
import type { KeptSettings } from "../limits/state-file.ts";
import type { CrawlerConfig } from "../settings/config.ts";

const contact = z.object({
  /** When the answer's header arrived or the request failed. */
  at: z.iso.datetime(),
  /** For a measurement, the origin or the address with its port. */
  url: z.string(),
  how: z.string(),
  status: z.number().nullable(),
  /** The peer's address. Null if none was reached or only a proxy knows it. */
  address: z.string().nullable(),
  failure: z.string().optional(),
});

export type Contact = Readonly<z.infer<typeof contact>>;

const folderOf = (home: string) => join(home, "crawler", "fetched");
const fileForm = /^fetched-(\d{15})\.jsonl(\.gz)?$/;
const writeEveryMs = 250;
const dayMs = 86_400_000;
const mostPieceBytes = 8 * 1024 * 1024;
/** Size of one file, as a share of the limit. */
const pieceShare = 1 / 8;
const mostUrlCharacters = 2048;

export class FetchedList {
  readonly #folder: string;
  readonly #wanted: () => CrawlerConfig["fetched"];
  readonly #warn: KeptSettings["warn"];
  readonly #now: () => Date;
  #lines: string[] = [];
  #timer: NodeJS.Timeout | null = null;
  #file: string | null = null;
  #fileBytes = 0;
  #fileFromMs = 0;
  #hasWarned = false;

  /** `wanted` is called repeatedly, because settings can change. */
  constructor(settings: {
    readonly kept: KeptSettings;
    readonly wanted: () => CrawlerConfig["fetched"];
    readonly now?: () => Date;
  }) {
    this.#folder = folderOf(settings.kept.home);
    this.#warn = settings.kept.warn;
    this.#wanted = settings.wanted;
    this.#now = settings.now ?? (() => new Date());
  }

  note(made: Omit<Contact, "at">): void {
    if (this.#wanted().days === 0) return;
    const line = { at: this.#now().toISOString(), ...made, url: made.url.slice(0, mostUrlCharacters) };
    this.#lines.push(`${JSON.stringify(line)}\n`);
    this.#timer ??= setTimeout(() => this.write(), writeEveryMs).unref();
  }

  write(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const text = this.#lines.splice(0).join("");
    if (text === "") return;
    try {
      this.#append(text);
    } catch (error) {
      if (!this.#hasWarned) this.#warn({ error }, "the list of what was fetched cannot be written");
      this.#hasWarned = true;
    }
  }

  #append(text: string): void {
    const pieceBytes = Math.min(mostPieceBytes, this.#wanted().maxBytes * pieceShare);
    const isOld = this.#now().getTime() - this.#fileFromMs > dayMs;
    if (this.#file !== null && (isOld || this.#fileBytes + text.length > pieceBytes)) {
      this.#pack(this.#file);
      this.#file = null;
    }
    if (this.#file === null) {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      this.#fileFromMs = this.#now().getTime();
      this.#file = join(this.#folder, `fetched-${String(this.#fileFromMs).padStart(15, "0")}.jsonl`);
      this.#fileBytes = 0;
      this.#forget(pieceBytes);
    }
    writeFileSync(this.#file, text, { flag: "a", mode: 0o600 });
    this.#fileBytes += Buffer.byteLength(text);
  }

  /** A file that is not compressed in time stays as it is and remains readable. */
  #pack(file: string): void {
    gzip(readFileSync(file), (error, packed) => {
      // The file may have been removed in the meantime.
      if (error !== null || !existsSync(file)) return;
      try {
        writeFileSync(`${file}.gz.new`, packed, { mode: 0o600 });
        renameSync(`${file}.gz.new`, `${file}.gz`);
        rmSync(file, { force: true });
      } catch {
        rmSync(`${file}.gz.new`, { force: true });
      }
    });
  }

  /** `roomBytes` is reserved for the next file and its compressed copy. */
  #forget(roomBytes: number): void {
    const { days, maxBytes } = this.#wanted();
    const files = filesIn(this.#folder);
    let bytes = files.reduce((sum, { bytes }) => sum + bytes, 2 * roomBytes);
    files.forEach((file, at) => {
      // A file ends where the next one begins, and covers at most a day.
      const endedMs = Math.min(files[at + 1]?.fromMs ?? Number.POSITIVE_INFINITY, file.fromMs + dayMs);
      if (bytes <= maxBytes && endedMs >= this.#now().getTime() - days * dayMs) return;
      rmSync(file.path, { force: true });
      bytes -= file.bytes;
    });
  }
}

interface ListFile {
  readonly path: string;
  readonly fromMs: number;
  readonly bytes: number;
}

function filesIn(folder: string): ListFile[] {
  if (!existsSync(folder)) return [];
  const files = new Map<string, ListFile>();
  // If both exist, the compressed file replaces the plain one that was left over.
  for (const name of readdirSync(folder).sort()) {
    const stem = fileForm.exec(name)?.[1];
    const path = join(folder, name);
    const bytes = statSync(path, { throwIfNoEntry: false })?.size;
    if (stem !== undefined && bytes !== undefined) files.set(stem, { path, fromMs: Number(stem), bytes });
  }
  return [...files.values()];
}

interface FetchedQuestion {
  readonly since: Date;
  readonly until: Date;
  readonly host: string | null;
}

export function fetchedFrom(home: string): Date | null {
  const [first] = filesIn(folderOf(home));
  return first === undefined ? null : new Date(first.fromMs);
}

/** Keeps the order in which answers arrived. */
export async function* readFetched(home: string, question: FetchedQuestion): AsyncGenerator<Contact> {
  const [since, until] = [question.since.toISOString(), question.until.toISOString()];
  const files = filesIn(folderOf(home));
  for (const [at, { path, fromMs }] of files.entries()) {
    const endMs = files[at + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
    if (endMs < question.since.getTime() || fromMs > question.until.getTime()) continue;
    for await (const line of linesOf(path)) {
      const made = contactIn(line);
      if (made === null || made.at < since || made.at > until) continue;
      if (question.host === null || isAt(made, question.host)) yield made;
    }
  }
}

async function* linesOf(path: string): AsyncGenerator<string> {
  const file = createReadStream(path);
  const input = path.endsWith(".gz") ? file.pipe(createGunzip()) : file;
  file.on("error", (error) => input.destroy(error));
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    // The file was compressed in the meantime. The copy has the same lines, and repeating a line is better than omitting one.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || path.endsWith(".gz")) throw error;
    yield* linesOf(`${path}.gz`);
  }
}

function contactIn(line: string): Contact | null {
  return contact.safeParse(jsonOf(line)).data ?? null;
}

function isAt({ url, address }: Contact, host: string): boolean {
  const named = /^[a-z]+:\/\/(\[[^\]]*\]|[^/:?#]*)/.exec(url)?.[1] ?? "";
  return address === host || named === host || named === `[${host}]` || named.endsWith(`.${host}`);
}
