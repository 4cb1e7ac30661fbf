/**
 * Compares the process's memory with its limit. From four fifths on, fewer hosts are crawled at a time; from nineteen
 * twentieths on, requests go out one by one, each reserving its maximum size, and garbage is collected earlier. The
 * heap has no hard limit, because reaching one would end the process.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { bytesInWords, type LimitUsage, limitUsage } from "./limit-usage.ts";

const fewerFrom = 0.8;
const oneByOneFrom = 0.95;
const collectFrom = 0.85;
/** One request takes at most its body's limit on the wire (5 MiB) and the same decoded. */
const mostRequestBytes = 10 * 1024 * 1024;
const lookEveryMs = 1000;
const collectEveryMs = 15_000;

export interface MemorySigns {
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

  hosts(concurrentHosts: number): number {
    const room = (oneByOneFrom - this.#part()) / (oneByOneFrom - fewerFrom);
    return Math.max(1, Math.floor(concurrentHosts * Math.min(1, room)));
  }

  /**
   * True when requests must go out one by one, or when no room is left besides those under way or not yet extracted.
   * Each reserves the body's limit twice; memory already used is measured again.
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

/** Returns V8's own collector for this thread. */
function collector(): () => void {
  if (collecting === null) {
    setFlagsFromString("--expose-gc");
    collecting = runInNewContext("gc") as () => void;
  }
  return collecting;
}

const mebibyte = 1024 * 1024;

/**
 * Sets the young generation of an extraction thread (three semi-spaces of V8). A larger one saves collections and
 * processor time at the cost of memory (test/bench/results/crawl.md). A host without a memory limit did not want to
 * save memory.
 */
export function youngMegabytes(memoryBytes: number | null): number {
  return memoryBytes === null || memoryBytes >= 512 * mebibyte ? 48 : 8;
}
