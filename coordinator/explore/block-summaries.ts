/**
 * What occurs among each thousand places, so that a search for something rare passes over nearly all of them. A
 * summary only grows; it may say yes too much, and never no too much.
 */

export const placesPerBlock = 1024;

/** What a place adds to its block. */
export interface BlockEntry {
  readonly crawlerNumber: number;
  readonly label: number;
  readonly rttMs: number;
  readonly since: number;
  readonly isDelegated: boolean;
  readonly isOwn: boolean;
  readonly sizeBits: number;
}

const [delegatedBit, ownBit, openBit] = [1, 2, 4];

export class BlockSummaries {
  /** One bit of 32 for each crawler, by its number. */
  readonly #crawlers: Uint32Array;
  /** One bit of 32 for each country and registry, by the label. */
  readonly #labels: Uint32Array;
  readonly #states: Uint8Array;
  readonly #highestRttMs: Float32Array;
  readonly #lowestRttMs: Float32Array;
  readonly #oldest: Uint32Array;
  readonly #largestBits: Float32Array;

  constructor(places: number) {
    const blocks = Math.ceil(places / placesPerBlock);
    this.#crawlers = new Uint32Array(blocks);
    this.#labels = new Uint32Array(blocks);
    this.#states = new Uint8Array(blocks);
    this.#highestRttMs = new Float32Array(blocks).fill(-1);
    this.#lowestRttMs = new Float32Array(blocks).fill(Number.POSITIVE_INFINITY);
    this.#oldest = new Uint32Array(blocks).fill(0xffffffff);
    this.#largestBits = new Float32Array(blocks);
  }

  get bytes(): number {
    return 25 * this.#crawlers.length;
  }

  note(place: number, entry: BlockEntry): void {
    const block = blockOf(place);
    this.#labels[block] = (this.#labels[block] as number) | bitOf(entry.label);
    if (entry.sizeBits > (this.#largestBits[block] as number)) this.#largestBits[block] = entry.sizeBits;
    if (!entry.isDelegated) {
      this.#states[block] = (this.#states[block] as number) | openBit;
      return;
    }
    this.#states[block] = (this.#states[block] as number) | delegatedBit | (entry.isOwn ? ownBit : 0);
    this.#crawlers[block] = (this.#crawlers[block] as number) | bitOf(entry.crawlerNumber);
    this.noteSince(place, entry.since);
    if (Number.isNaN(entry.rttMs)) return;
    this.#highestRttMs[block] = Math.max(this.#highestRttMs[block] as number, entry.rttMs);
    this.#lowestRttMs[block] = Math.min(this.#lowestRttMs[block] as number, entry.rttMs);
  }

  noteSince(place: number, since: number): void {
    const block = blockOf(place);
    if (since > 0) this.#oldest[block] = Math.min(this.#oldest[block] as number, since);
  }

  mayHaveCrawler(block: number, crawlerNumber: number): boolean {
    return ((this.#crawlers[block] as number) & bitOf(crawlerNumber)) !== 0;
  }

  mayHaveLabel(block: number, labels: number): boolean {
    return ((this.#labels[block] as number) & labels) !== 0;
  }

  hasOwn(block: number): boolean {
    return ((this.#states[block] as number) & ownBit) !== 0;
  }

  hasOpen(block: number): boolean {
    return ((this.#states[block] as number) & openBit) !== 0;
  }

  hasDelegated(block: number): boolean {
    return ((this.#states[block] as number) & delegatedBit) !== 0;
  }

  /** With a little room for how RTTs are rounded. */
  mayHaveRtt(block: number, lowestMs: number, highestMs: number): boolean {
    return (
      (this.#highestRttMs[block] as number) >= lowestMs - 0.01 &&
      (this.#lowestRttMs[block] as number) <= highestMs + 0.01
    );
  }

  /** The highest RTT among them; below 0 where none was measured. */
  highestRttMs(block: number): number {
    return this.#highestRttMs[block] as number;
  }

  /** When the oldest delegation among them was made, in seconds since 1970. */
  oldest(block: number): number {
    return this.#oldest[block] as number;
  }

  largestBits(block: number): number {
    return this.#largestBits[block] as number;
  }

  mayBeOlderThan(block: number, since: number): boolean {
    return (this.#oldest[block] as number) <= since;
  }
}

export const blockOf = (place: number): number => Math.floor(place / placesPerBlock);
/** A crawler's or a label's bit. */
export const bitOf = (number: number): number => 1 << (number & 31);
