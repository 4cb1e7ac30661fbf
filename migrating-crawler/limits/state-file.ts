/**
 * A small file in the crawler's home that holds what should survive a restart: written whole and put in place by
 * a rename, so that a crash leaves the old one or the new one; every few seconds at most, and at stop. What is
 * found at start is somebody's bytes: bounded, and the owner checks them.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface KeptSettings {
  readonly home: string;
  /** Told once when what is on disk cannot be used, or cannot be written. */
  readonly warn: (fields: object, words: string) => void;
}

interface KeptFileSettings extends KeptSettings {
  readonly name: string;
  /** A larger file is not read; the owner's content must stay below. */
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

  /** What `check` makes of the file's JSON; null when there is none, or none that it accepts. */
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

  /** The content has changed: it is asked for and written soon. */
  changed(content: () => unknown): void {
    this.#content = content;
    this.#write ??= setTimeout(() => this.#save(), this.#settings.everyMs).unref();
  }

  /** Written before this returns, so that it is there whatever becomes of the process. */
  writeNow(content: unknown): void {
    this.#content = () => content;
    this.#save();
  }

  /** Writes what has not been written yet. */
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
