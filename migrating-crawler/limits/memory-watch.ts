/**
 * The process's memory against its limit. From four fifths of it on fewer hosts are crawled at a time, at nineteen
 * twentieths requests go out one by one (a request takes what it may come to before it begins), and garbage is collected
 * earlier than V8 would by itself. The heap has no hard limit of its own: reaching one ends a process, which is worse
 * for everybody than a slow crawler.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { bytesInWords, type LimitUsage, limitUsage } from "./limit-usage.ts";

const fewerFrom = 0.8;
const oneByOneFrom = 0.95;
const collectFrom = 0.85;
/** Of one request: a body's limit on the wire (5 MiB), and the same decoded. */
const mostRequestBytes = 10 * 1024 * 1024;
const lookEveryMs = 1000;
const collectEveryMs = 15_000;

export interface MemorySigns {
  /** Resident memory of the process. */
  readonly residentBytes: () => number;
  readonly collect: () => void;
  readonly nowMs: () => number;
}

const processMemory: MemorySigns = {
  residentBytes: () => process.memoryUsage.rss(),
  collect: () => collector()(),
  nowMs: () => performance.now(),
};

export class MemoryWatch {
  #capBytes: number | null;
  readonly #signs: MemorySigns;
  #bytes = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #collectedAtMs = Number.NEGATIVE_INFINITY;

  constructor(capBytes: number | null, signs: MemorySigns = processMemory) {
    this.#capBytes = capBytes;
    this.#signs = signs;
  }

  apply(capBytes: number | null): void {
    this.#capBytes = capBytes;
  }

  /** How many of so many hosts may be crawled at a time: at least one. */
  hosts(concurrentHosts: number): number {
    const room = (oneByOneFrom - this.#part()) / (oneByOneFrom - fewerFrom);
    return Math.max(1, Math.floor(concurrentHosts * Math.min(1, room)));
  }

  /**
   * Requests go out one by one, or there is no room for another beside those under way and not extracted yet. Each may come to a body's limit and
   * as much again decoded; what those before have brought by now is looked at anew.
   */
  isShort(taken = 0): boolean {
    if (this.#capBytes === null) return false;
    if (this.#part() >= oneByOneFrom) return true;
    const soonBytes = (taken + 1) * mostRequestBytes;
    return taken > 0 && this.#signs.residentBytes() + soonBytes > oneByOneFrom * this.#capBytes;
  }

  usage(): LimitUsage {
    const part = this.#part();
    const cap = this.#capBytes;
    const words = `${bytesInWords(this.#bytes)} of ${bytesInWords(cap ?? 0)} of memory are used`;
    const effect =
      part >= oneByOneFrom ? "pages are fetched one by one" : "fewer hosts are crawled at a time";
    const holdingBack = part > fewerFrom ? `${words}: ${effect}` : "";
    return limitUsage("memoryBytes", holdingBack, { unit: "bytes", used: this.#signs.residentBytes(), cap });
  }

  /** Of the limit; 0 where there is none. */
  #part(): number {
    if (this.#capBytes === null) return 0;
    const nowMs = this.#signs.nowMs();
    if (nowMs - this.#lookedAtMs >= lookEveryMs) this.#look(nowMs);
    return this.#bytes / this.#capBytes;
  }

  #look(nowMs: number): void {
    this.#lookedAtMs = nowMs;
    this.#bytes = this.#signs.residentBytes();
    const isFull = this.#bytes >= collectFrom * (this.#capBytes ?? Number.POSITIVE_INFINITY);
    if (!isFull || nowMs - this.#collectedAtMs < collectEveryMs) return;
    this.#collectedAtMs = nowMs;
    this.#signs.collect();
    this.#bytes = this.#signs.residentBytes();
  }
}

let collecting: (() => void) | null = null;

/** V8's own collector, of this thread. */
function collector(): () => void {
  if (collecting === null) {
    setFlagsFromString("--expose-gc");
    collecting = runInNewContext("gc") as () => void;
  }
  return collecting;
}

const mebibyte = 1024 * 1024;

/**
 * Room for the young objects of an extraction thread (three semi-spaces of V8). With more of it there are fewer collections, and fewer
 * objects of a page live until they count as old ones: less work for the processor, for memory that a small host does
 * not have (test/bench/results/crawl.md). No limit is one that the host did not want to set.
 */
export function youngMegabytes(memoryBytes: number | null): number {
  return memoryBytes === null || memoryBytes >= 512 * mebibyte ? 48 : 8;
}
