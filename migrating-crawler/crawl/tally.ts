/** Counts what the crawler has done since its start, and how fast it goes. */
import type { FetchResult } from "#protocol/result";

const windowMs = 60_000;

export class Tally {
  pages = 0;
  /** Bodies as they came over the wire, and decoded. */
  fetchedBytes = 0;
  bodyBytes = 0;
  /** When the pages of the last minute were fetched, oldest first. */
  #recent: number[] = [];

  /** Refusals without a request (robots, addresses) are no pages. */
  count(result: Pick<FetchResult, "outcome" | "wireBytes" | "bodyBytes">, nowMs: number): void {
    const { type } = result.outcome;
    if (type === "refused-by-robots" || type === "refused-address" || type === "failed") return;
    this.pages++;
    this.fetchedBytes += result.wireBytes;
    this.bodyBytes += result.bodyBytes;
    this.#recent.push(nowMs);
    if (this.#recent.length > 4096) this.#forget(nowMs);
  }

  pagesPerMinute(nowMs: number): number {
    this.#forget(nowMs);
    return this.#recent.length;
  }

  #forget(nowMs: number): void {
    const first = this.#recent.findIndex((atMs) => nowMs - atMs < windowMs);
    this.#recent = first < 0 ? [] : this.#recent.slice(first);
  }
}
