/**
 * Keeps the crawler inside what its host allows: pages and bytes a day, download rate, hosts at a time.
 * The day's counters are on disk, so that a restart does not start the day anew; they are written at most
 * every two seconds, so a kill loses the count of that long. Days are UTC.
 */
import { z } from "zod";
import { KeptFile, type KeptSettings } from "./kept-file.ts";

export interface GovernorLimits {
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
  readonly concurrentHosts: number;
  readonly kilobytesPerSecond: number | null;
}

const dayCount = z.object({ day: z.string(), pages: z.int().min(0), bytes: z.int().min(0) });
type DayCount = z.infer<typeof dayCount>;

const keptFile = { name: "day-count.json", maxBytes: 1024, everyMs: 2000 };
/** The rate may be exceeded by this much of a second's allowance, so that short pages need no waiting. */
const burstSeconds = 1;

export class Governor {
  readonly #limits: GovernorLimits;
  readonly #file: KeptFile;
  readonly #now: () => Date;
  #count: DayCount;
  #allowance: number;
  #allowanceAtMs: number;
  readonly #waiting = new Set<() => void>();

  constructor(settings: {
    readonly limits: GovernorLimits;
    readonly kept: KeptSettings;
    readonly now?: () => Date;
  }) {
    this.#limits = settings.limits;
    this.#now = settings.now ?? (() => new Date());
    this.#file = new KeptFile({ ...settings.kept, ...keptFile });
    this.#count = this.#file.read((json) => dayCount.safeParse(json).data ?? null) ?? noCount;
    this.#allowance = this.#bytesPerSecond() * burstSeconds;
    this.#allowanceAtMs = performance.now();
  }

  /** Whether another page may be fetched today. */
  mayFetch(): boolean {
    const { pages, bytes } = this.#today();
    return pages < this.#limits.pagesPerDay && bytes < this.#limits.bytesPerDay;
  }

  countPage(): void {
    this.#today().pages++;
    this.#file.changed(() => this.#count);
  }

  /** Counts bytes off the wire; resolves when the rate allows the next piece, null when at once. */
  takeBytes(bytes: number): Promise<void> | null {
    this.#today().bytes += bytes;
    this.#file.changed(() => this.#count);
    const rate = this.#bytesPerSecond();
    if (rate === Number.POSITIVE_INFINITY) return null;
    const nowMs = performance.now();
    this.#allowance = Math.min(
      rate * burstSeconds,
      this.#allowance + ((nowMs - this.#allowanceAtMs) / 1000) * rate,
    );
    this.#allowanceAtMs = nowMs;
    this.#allowance -= bytes;
    return this.#allowance >= 0 ? null : this.#wait((-this.#allowance / rate) * 1000);
  }

  /** How many more hosts may be opened, when so many are open. */
  freeHosts(openHosts: number): number {
    return this.mayFetch() ? Math.max(0, this.#limits.concurrentHosts - openHosts) : 0;
  }

  /** What the limits hold back right now, in words; empty when nothing. */
  holdingBack(openHosts: number): string[] {
    const { pages, bytes } = this.#today();
    const words: string[] = [];
    if (pages >= this.#limits.pagesPerDay)
      words.push(`the day's ${this.#limits.pagesPerDay} pages are fetched`);
    if (bytes >= this.#limits.bytesPerDay)
      words.push(`the day's ${this.#limits.bytesPerDay} bytes are fetched`);
    if (openHosts >= this.#limits.concurrentHosts) {
      words.push(`all ${this.#limits.concurrentHosts} places for hosts are taken`);
    }
    if (this.#waiting.size > 0) {
      words.push(
        `${this.#waiting.size} downloads wait for the rate of ${this.#limits.kilobytesPerSecond} KB/s`,
      );
    }
    return words;
  }

  /** Writes the counters; nobody waits for the rate any more. */
  close(): void {
    this.#file.close();
    for (const goOn of [...this.#waiting]) goOn();
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const goOn = () => {
        clearTimeout(timer);
        this.#waiting.delete(goOn);
        resolve();
      };
      const timer = setTimeout(goOn, ms);
      this.#waiting.add(goOn);
    });
  }

  #bytesPerSecond(): number {
    const { kilobytesPerSecond } = this.#limits;
    return kilobytesPerSecond === null ? Number.POSITIVE_INFINITY : kilobytesPerSecond * 1024;
  }

  #today(): DayCount {
    const day = dayOf(this.#now());
    if (this.#count.day !== day) this.#count = { day, pages: 0, bytes: 0 };
    return this.#count;
  }
}

const noCount: DayCount = { day: "", pages: 0, bytes: 0 };
const dayOf = (time: Date) => time.toISOString().slice(0, 10);
