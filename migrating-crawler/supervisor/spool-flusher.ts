/**
 * Flushes the crawler's spool to the disk once a second: under Node's permission model the crawler itself may not
 * (fsync is denied to it), and a power cut should cost a second of results, not half a minute.
 */
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

const everyMs = 1000;

export class SpoolFlusher {
  readonly #folder: string;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | null = null;
  /** What was flushed last, and how long it was. */
  #flushed = "";

  constructor(home: string) {
    this.#folder = join(home, "spool");
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#flushing ??= this.#flush().finally(() => {
        this.#flushing = null;
      });
    }, everyMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.#flush();
  }

  /** The newest segment is the one that is written. */
  async #flush(): Promise<void> {
    try {
      const names = (await readdir(this.#folder)).filter((name) => /^results-\d{16}\.log$/.test(name));
      const newest = names.sort().at(-1);
      if (newest === undefined) return;
      const path = join(this.#folder, newest);
      const { size, mtimeMs } = await stat(path);
      const seen = `${newest} ${size} ${mtimeMs}`;
      if (seen !== this.#flushed) await syncFile(path);
      this.#flushed = seen;
    } catch {
      // The folder is not there yet, or the segment was acknowledged and removed meanwhile.
    }
  }
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}
