/**
 * Compares the size of the crawler's folder with its disk limit. The folder is measured every half minute; in between
 * only the spool, which alone grows fast, is asked. Near the limit fetching stops and the spool gets the remaining
 * space.
 */
import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { CrawlerLimits } from "../settings/limits-config.ts";
import { bytesInWords, type LimitUsage, limitUsage } from "./limit-usage.ts";

type Disk = Pick<CrawlerLimits, "diskBytes" | "spoolBytes">;

const lookEveryMs = 30_000;
/** A folder with more entries is only counted up to here. */
const mostEntries = 200_000;
/** Reserved for counters, keys and other small files. */
const smallFilesBytes = 1024 * 1024;

export class DiskWatch {
  #disk: Disk;
  readonly #home: string;
  readonly #spoolBytes: () => number;
  /** Bytes of everything except the spool. */
  #otherBytes = 0;
  #freeBytes: number | null = null;
  readonly #timer: NodeJS.Timeout;

  constructor(disk: Disk, settings: { readonly home: string; readonly spoolBytes: () => number }) {
    this.#disk = disk;
    this.#home = settings.home;
    this.#spoolBytes = settings.spoolBytes;
    this.#timer = setInterval(() => void this.look(), lookEveryMs).unref();
    void this.look();
  }

  apply(disk: Disk): void {
    this.#disk = disk;
    void this.look();
  }

  spoolMostBytes(): number {
    const { diskBytes, spoolBytes } = this.#disk;
    if (diskBytes === null) return spoolBytes;
    return Math.max(0, Math.min(spoolBytes, diskBytes - this.#otherBytes - smallFilesBytes));
  }

  isFull(): boolean {
    const { diskBytes } = this.#disk;
    return diskBytes !== null && this.#used() + smallFilesBytes >= diskBytes;
  }

  usage(): LimitUsage {
    const cap = this.#disk.diskBytes;
    const used = cap === null ? null : this.#used();
    const words = `the crawler's folder has ${bytesInWords(used ?? 0)}, and ${bytesInWords(cap ?? 0)} are allowed`;
    return limitUsage("diskBytes", this.isFull() ? words : "", { unit: "bytes", used, cap });
  }

  /** Bytes free for this user on the folder's file system, or null when unknown. */
  get freeBytes(): number | null {
    return this.#freeBytes;
  }

  async look(): Promise<void> {
    this.#freeBytes = await statfs(this.#home).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => null,
    );
    if (this.#disk.diskBytes === null) return;
    const all = await bytesIn(this.#home);
    this.#otherBytes = Math.max(0, all - (await bytesIn(join(this.#home, "spool"))));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #used(): number {
    return this.#otherBytes + this.#spoolBytes();
  }
}

/** Does not follow links, and counts files that disappear meanwhile as empty. */
async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  let entries = 0;
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined && entries < mostEntries; next = folders.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true }).catch(() => [])) {
      entries++;
      const path = join(next, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile())
        bytes += await stat(path).then(
          ({ size }) => size,
          () => 0,
        );
    }
  }
  return bytes;
}
