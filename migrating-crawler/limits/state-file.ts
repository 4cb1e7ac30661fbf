/**
 * Keeps a small file in the crawler's home across restarts. It is written whole, at most every few seconds and at stop,
 * and renamed into place, so a crash leaves the old or the new file. The content at start is untrusted: its size is
 * limited and the owner validates it.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface KeptSettings {
  readonly home: string;
  /** Called once when the file is unusable or cannot be written. */
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

  /** Returns what `check` accepts, or null when the file is missing or invalid. */
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

  /** Schedules a write; `content` is called when it happens. */
  changed(content: () => unknown): void {
    this.#content = content;
    this.#write ??= setTimeout(() => this.#save(), this.#settings.everyMs).unref();
  }

  /** Writes before it returns, so the data survives any crash. */
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
