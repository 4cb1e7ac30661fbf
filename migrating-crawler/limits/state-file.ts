/**
 * Keeps a small file in the crawler's home across restarts. It is written whole, at most every few seconds and at stop, and
 * renamed into place, so that a crash leaves the old or the new file. The content read at start is untrusted, so its size is
 * limited and the owner validates it.
 */

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { jsonIn } from "../core/json.ts";

export interface KeptSettings {
  readonly home: string;
  readonly warn: (fields: object, words: string) => void;
}

interface KeptFileSettings extends KeptSettings {
  readonly name: string;
  /** Larger files are not read, so the content must stay below this size. */
  readonly maxBytes: number;
  readonly everyMs: number;
}

export class KeptFile {
  readonly #settings: KeptFileSettings;
  readonly #path: string;
  #write: NodeJS.Timeout | null = null;
  #content: (() => unknown) | null = null;
  #warned = false;

  constructor(settings: KeptFileSettings) {
    this.#settings = settings;
    this.#path = join(settings.home, settings.name);
  }

  /** Returns what `check` accepts, or null if the file is missing or invalid. */
  read<Value>(check: (json: unknown) => Value | null): Value | null {
    try {
      const { maxBytes } = this.#settings;
      const { size } = statSync(this.#path);
      const value = size > maxBytes ? null : check(JSON.parse(readFileSync(this.#path, "utf8")));
      if (value === null) this.#warn(new Error(`${size} bytes that are not ours`), "is ignored");
      return value;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.#warn(error, "is ignored");
      return null;
    }
  }

  changed(content: () => unknown): void {
    this.#content = content;
    this.#write ??= setTimeout(() => this.#save(), this.#settings.everyMs).unref();
  }

  /** Returns once the data is written, so that it survives any crash. */
  writeNow(content: unknown): void {
    this.#content = () => content;
    this.#save();
  }

  close(): void {
    this.#save();
  }

  #save(): void {
    if (this.#write !== null) clearTimeout(this.#write);
    this.#write = null;
    const content = this.#content;
    this.#content = null;
    if (content === null) return;
    try {
      const { home } = this.#settings;
      if (!existsSync(home)) mkdirSync(home, { recursive: true });
      writeFileSync(`${this.#path}.new`, JSON.stringify(content()));
      renameSync(`${this.#path}.new`, this.#path);
    } catch (error) {
      this.#warn(error, "cannot be written");
    }
  }

  #warn(error: unknown, what: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#settings.warn({ file: this.#path, error }, `what is kept in ${this.#settings.name} ${what}`);
  }
}

// Stores what the host asks of its crawler until `resume`, even across restarts: a pause (it contacts only its coordinator) or
// a drain (it finishes its work and leaves, status/drain.ts). Each is a file in the crawler's folder, so that commands work
// whether or not the crawler runs.

const files = { pause: "paused.json", drain: "draining.json" } as const;
type Asked = keyof typeof files;

const mostBytes = 4096;
const mostWords = 300;
const kept = z.object({ since: z.iso.datetime(), reason: z.string().max(mostWords) });

export type SinceAndWhy = Readonly<z.infer<typeof kept>>;

export function keepAsked(what: Asked, home: string, reason: string): void {
  const path = join(home, files[what]);
  const asked: SinceAndWhy = { since: new Date().toISOString(), reason: reason.slice(0, mostWords) };
  if (!existsSync(home)) mkdirSync(home, { recursive: true });
  // Does not follow a link at this path, because the writer may be root.
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, JSON.stringify(asked), { mode: 0o600, flag: "wx" });
  renameSync(`${path}.new`, path);
}

export function forgetAsked(what: Asked, home: string): void {
  rmSync(join(home, files[what]), { force: true });
}

/** Returns null if this was not asked for. An invalid file still pauses, but does not drain, because leaving cannot be undone. */
export function readAsked(what: Asked, home: string): SinceAndWhy | null {
  const path = join(home, files[what]);
  const asked = jsonIn(path, mostBytes, kept);
  if (asked !== null || what === "drain" || !existsSync(path)) return asked;
  const since = statSync(path, { throwIfNoEntry: false })?.mtime;
  return since === undefined ? null : { since: since.toISOString(), reason: `by ${path}` };
}
