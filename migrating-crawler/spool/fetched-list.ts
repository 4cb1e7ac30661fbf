/**
 * What this crawler asked of whom, and when, for the partner who gets a complaint: one line of JSON for each request and
 * each measurement, in `crawler/fetched/`. A file that is full is packed. What is older than the partner wants, or more than
 * may be kept, is removed, the oldest first. Reading needs no running crawler.
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
  /** When the answer's head came, or the request failed. */
  at: z.iso.datetime(),
  /** Of a measurement: the origin, or the address with its port. */
  url: z.string(),
  how: z.string(),
  /** Null: no answer came, or none was asked for. */
  status: z.number().nullable(),
  /** The other end; null: none was reached, or a proxy knows it alone. */
  address: z.string().nullable(),
  /** Why there is no status. */
  failure: z.string().optional(),
});

export type Contact = Readonly<z.infer<typeof contact>>;

const folderOf = (home: string) => join(home, "crawler", "fetched");
const fileForm = /^fetched-(\d{15})\.jsonl(\.gz)?$/;
const writeEveryMs = 250;
const dayMs = 86_400_000;
const mostPieceBytes = 8 * 1024 * 1024;
/** Of the bytes of all files. */
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

  /** `wanted`: asked again and again, settings change. */
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

  /** What was noted since. */
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

  /** One that is not packed in time stays as it is, and is read like the others. */
  #pack(file: string): void {
    gzip(readFileSync(file), (error, packed) => {
      // It may have been forgotten meanwhile.
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

  /** `roomBytes`: for the file to come, and its packed copy. */
  #forget(roomBytes: number): void {
    const { days, maxBytes } = this.#wanted();
    const files = filesIn(this.#folder);
    let bytes = files.reduce((sum, { bytes }) => sum + bytes, 2 * roomBytes);
    files.forEach((file, at) => {
      // It ends where the next one begins, and is written for a day at most.
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

/** Oldest first. */
function filesIn(folder: string): ListFile[] {
  if (!existsSync(folder)) return [];
  const files = new Map<string, ListFile>();
  // A packed file follows the plain one, which is left over where both are there.
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
  /** This host and what is below it, or this address; null: any. */
  readonly host: string | null;
}

/** When the oldest line was noted; null: nothing is kept. */
export function fetchedFrom(home: string): Date | null {
  const [first] = filesIn(folderOf(home));
  return first === undefined ? null : new Date(first.fromMs);
}

/** In the order in which the answers came. */
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
    // Packed meanwhile: the copy has the same lines, and a line is better said twice than not at all.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || path.endsWith(".gz")) throw error;
    yield* linesOf(`${path}.gz`);
  }
}

/** Null: the last line before the machine went down, cut off. */
function contactIn(line: string): Contact | null {
  return contact.safeParse(jsonOf(line)).data ?? null;
}

function isAt({ url, address }: Contact, host: string): boolean {
  const named = /^[a-z]+:\/\/(\[[^\]]*\]|[^/:?#]*)/.exec(url)?.[1] ?? "";
  return address === host || named === host || named === `[${host}]` || named.endsWith(`.${host}`);
}
