/**
 * The journal outside the database: a folder of files to which a line is appended for each entry. A line contains the
 * digest of its entry, so that a line that was cut short or altered is recognised:
 *
 *   {"check":"5b3c0d1e2f4a6978","entry":{"entryId":…,"number":…,"epoch":…,"at":…,"kind":…,"key":…,"value":…}}
 *
 * Several processes append to it (coordinator and commands), so an entry may occur twice.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { DatabaseError } from "#core/errors";

const entrySchema = z.object({
  /** The same in the database and in every journal. */
  entryId: z.uuid(),
  /** Order of creation within an epoch. */
  number: z.number().int().nonnegative(),
  epoch: z.number().int().positive(),
  at: z.iso.datetime(),
  kind: z.string().min(1).max(63),
  key: z.string().max(20_000),
  /** The row, by column. */
  value: z.record(z.string(), z.unknown()),
});

export type JournalEntry = z.infer<typeof entrySchema>;

interface JournalFault {
  readonly file: string;
  readonly line: number;
  readonly words: string;
}

/** The files cannot be read or written. Until they can, changes are only in the database. */
export class JournalError extends DatabaseError {}

export interface JournalContents {
  readonly entries: readonly JournalEntry[];
  readonly faults: readonly JournalFault[];
}

/** When a file is larger than this, a new one begins. */
const mostFileBytes = 8_000_000;

/** Maximum length of a line. A row of the audit log with both values has 10 KB. */
const mostLineCharacters = 200_000;

const fileName = /^\d{8}T\d{9}Z\.jsonl$/;

const newline = 0x0a;

export class JournalFolder {
  readonly folder: string;
  readonly #mostFileBytes: number;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(folder: string, mostBytes = mostFileBytes) {
    this.folder = folder;
    this.#mostFileBytes = mostBytes;
  }

  /** Resolves when the entries are on disk. Throws a DatabaseError that names the folder if it is full, read-only or missing. */
  async append(entries: readonly JournalEntry[], now: Date): Promise<void> {
    if (entries.length === 0) return;
    const done = this.#turn.then(async () => await this.#append(entries, now));
    this.#turn = done.catch(() => {});
    await done;
  }

  /** Reads all files. A missing folder counts as empty. */
  async read(): Promise<JournalContents> {
    const entries = new Map<string, JournalEntry>();
    const faults: JournalFault[] = [];
    for (const file of await this.#files()) await readLines(file, entries, faults);
    return { entries: [...entries.values()], faults };
  }

  /** Deletes files last written before `before`, except the latest. Returns how many. */
  async forget(before: Date): Promise<number> {
    let gone = 0;
    for (const file of (await this.#files()).slice(0, -1)) {
      if ((await stat(file)).mtime >= before) continue;
      await unlink(file);
      gone += 1;
    }
    return gone;
  }

  async #append(entries: readonly JournalEntry[], now: Date): Promise<void> {
    try {
      const handle = await this.#open(now);
      try {
        const text = entries.map(lineOf).join("");
        // Writes all lines at once, so that entries of several processes do not mix.
        await handle.appendFile((await isTorn(handle)) ? `\n${text}` : text);
        await handle.datasync();
      } finally {
        await handle.close();
      }
    } catch (error) {
      throw new JournalError(`the journal in ${this.folder} cannot be written: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  async #open(now: Date): Promise<FileHandle> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const last = (await this.#files()).at(-1);
    const isRoomy = last !== undefined && (await stat(last)).size < this.#mostFileBytes;
    if (isRoomy) return await open(last, "a+", 0o600);
    const next = join(this.folder, `${now.toISOString().replaceAll(/[-:.]/g, "")}.jsonl`);
    // If the clock was set back, no file is created that would sort before the last one.
    const handle = await open(last !== undefined && next <= last ? last : next, "a+", 0o600);
    await syncFolder(this.folder);
    await syncFolder(dirname(this.folder));
    return handle;
  }

  async #files(): Promise<string[]> {
    try {
      const names = await readdir(this.folder);
      return names
        .filter((name) => fileName.test(name))
        .sort()
        .map((name) => join(this.folder, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw new JournalError(`the journal in ${this.folder} cannot be read: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}

/** Whether the file does not end with a line break, because its last writer was interrupted. */
async function isTorn(handle: FileHandle): Promise<boolean> {
  const { size } = await handle.stat();
  if (size === 0) return false;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== newline;
}

/** Makes the name of a new file durable, too. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const head = '{"check":"';
const middle = '","entry":';
const checkCharacters = 16;

function lineOf(entry: JournalEntry): string {
  const text = JSON.stringify(entry);
  return `${head}${checkOf(text)}${middle}${text}}\n`;
}

const checkOf = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, checkCharacters);

async function readLines(
  file: string,
  entries: Map<string, JournalEntry>,
  faults: JournalFault[],
): Promise<void> {
  let line = 0;
  const lines = createInterface({
    input: createReadStream(file, "utf8"),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  for await (const text of lines) {
    line += 1;
    if (text === "") continue;
    const entry = entryOf(text);
    if (typeof entry === "string") faults.push({ file, line, words: entry });
    else entries.set(entry.entryId, entry);
  }
}

/** Returns the entry, or what is wrong with the line. */
function entryOf(line: string): JournalEntry | string {
  const shown = () => `"${line.slice(0, 60)}${line.length > 60 ? "…" : ""}"`;
  if (line.length > mostLineCharacters)
    return `${line.length} characters are too many for an entry: ${shown()}`;
  const textAt = head.length + checkCharacters + middle.length;
  if (!line.startsWith(head) || line.slice(head.length + checkCharacters, textAt) !== middle)
    return `no entry: ${shown()}`;
  if (!line.endsWith("}}")) return `cut short: ${shown()}`;
  const text = line.slice(textAt, -1);
  if (checkOf(text) !== line.slice(head.length, head.length + checkCharacters))
    return `it was changed since it was written, or cut short: ${shown()}`;
  const entry = entrySchema.safeParse(JSON.parse(text));
  return entry.success ? entry.data : `no entry: ${shown()}`;
}
