/** The last lines of HOME/log, which the dock writes (dock/rotating-log.ts), and those that follow. */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";

export const mostLogLines = 10_000;
/** So much of the end of a file is looked at. */
const mostTailBytes = 8 * 1024 * 1024;

export const logFile = (home: string, age = 0) =>
  join(home, "log", age === 0 ? "crawler.log" : `crawler.${age}.log`);

/** The oldest first; also from the file before, when the newest has too few. None where there is no log. */
export function lastLogLines(home: string, count: number): string[] {
  const newest = tailOf(logFile(home), count);
  return newest.length >= count ? newest : [...tailOf(logFile(home, 1), count - newest.length), ...newest];
}

/** Where the log stands, and what was written since; a file that was followed by another is read from its start. */
export class LogFollower {
  readonly #path: string;
  #inode: number;
  #read: number;
  #rest = "";

  constructor(home: string) {
    this.#path = logFile(home);
    const stats = statSync(this.#path, { throwIfNoEntry: false });
    this.#inode = stats?.ino ?? 0;
    this.#read = stats?.size ?? 0;
  }

  /** Whole lines since the last call. */
  next(): string[] {
    const stats = statSync(this.#path, { throwIfNoEntry: false });
    if (stats === undefined) return [];
    if (stats.ino !== this.#inode || stats.size < this.#read) this.#read = 0;
    this.#inode = stats.ino;
    const text = this.#rest + textFrom(this.#path, this.#read, stats.size);
    this.#read = stats.size;
    const lines = text.split("\n");
    this.#rest = lines.pop() ?? "";
    return lines;
  }
}

function tailOf(path: string, count: number): string[] {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const from = Math.max(0, size - mostTailBytes);
  const lines = textFrom(path, from, size).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.slice(from > 0 ? 1 : 0).slice(-count);
}

function textFrom(path: string, from: number, to: number): string {
  if (to <= from) return "";
  const file = openSync(path, "r");
  try {
    const start = Math.max(from, to - mostTailBytes);
    const bytes = Buffer.alloc(Math.max(0, Math.min(to, fstatSync(file).size) - start));
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, start)).toString("utf8");
  } finally {
    closeSync(file);
  }
}
