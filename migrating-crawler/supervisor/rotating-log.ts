/**
 * Lines in HOME/log/crawler.log, followed by a new file when it is full; the oldest are removed. A disk that takes
 * nothing loses lines and nothing else.
 */
import { appendFileSync, mkdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";

/** 5 files of 4 MiB hold a day or two of a busy crawler's lines. */
const defaultFileBytes = 4 * 1024 * 1024;
const defaultFiles = 5;

export class RotatingLog {
  readonly #folder: string;
  readonly #fileBytes: number;
  readonly #files: number;
  #bytes = 0;

  constructor(settings: { readonly home: string; readonly fileBytes?: number; readonly files?: number }) {
    this.#folder = join(settings.home, "log");
    this.#fileBytes = settings.fileBytes ?? defaultFileBytes;
    this.#files = settings.files ?? defaultFiles;
    this.#try(() => {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      this.#bytes = sizeOf(this.#path(0));
    });
  }

  write(line: string): void {
    this.#try(() => {
      const bytes = Buffer.byteLength(line) + 1;
      if (this.#bytes > 0 && this.#bytes + bytes > this.#fileBytes) this.#rotate();
      appendFileSync(this.#path(0), `${line}\n`, { mode: 0o600 });
      this.#bytes += bytes;
    });
  }

  /** crawler.log is the newest, then crawler.1.log and so on; the last one is written over. */
  #rotate(): void {
    for (let age = this.#files - 1; age > 0; age -= 1) {
      this.#try(() => renameSync(this.#path(age - 1), this.#path(age)));
    }
    this.#bytes = sizeOf(this.#path(0));
  }

  #path(age: number): string {
    return join(this.#folder, age === 0 ? "crawler.log" : `crawler.${age}.log`);
  }

  #try(work: () => void): void {
    try {
      work();
    } catch {
      // A log that cannot be written ends no crawl.
    }
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
