/** Times by their size, 5 % a step, so that thousands of processes' worth of them can be sent and added up. */

const step = Math.log(1.05);
/** What is shorter counts as so long, in ms. */
const leastMs = 0.05;
const mostSteps = 400;

export type Counts = readonly number[];

export class Histogram {
  #counts: number[] = [];
  #total = 0;
  #most = 0;

  get total(): number {
    return this.#total;
  }

  add(ms: number): void {
    const at = Math.min(mostSteps, Math.max(0, Math.round(Math.log(Math.max(ms, leastMs) / leastMs) / step)));
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#total += 1;
    this.#most = Math.max(this.#most, ms);
  }

  /** What was added since the last time, as pairs of step and count; the longest is the first of them. */
  take(): Counts {
    const pairs = [this.#most, ...this.#counts.flatMap((count, at) => (count ? [at, count] : []))];
    this.#counts = [];
    this.#total = 0;
    this.#most = 0;
    return pairs;
  }

  merge([most = 0, ...pairs]: Counts): void {
    this.#most = Math.max(this.#most, most);
    for (let at = 0; at < pairs.length; at += 2) {
      this.#counts[pairs[at]!] = (this.#counts[pairs[at]!] ?? 0) + pairs[at + 1]!;
      this.#total += pairs[at + 1]!;
    }
  }

  /** In ms, exact for 1; null when there is none. */
  at(share: number): number | null {
    if (this.#total === 0) return null;
    if (share >= 1) return this.#most;
    let left = Math.max(1, Math.ceil(share * this.#total));
    for (const [at, count = 0] of this.#counts.entries()) {
      left -= count ?? 0;
      if (left <= 0) return Math.min(this.#most, leastMs * Math.exp(at * step));
    }
    return this.#most;
  }

  /** The share of those that took no longer; null when there is none. */
  within(ms: number): number | null {
    if (this.#total === 0) return null;
    const atMost = this.#counts.slice(0, Math.round(Math.log(ms / leastMs) / step) + 1);
    return atMost.reduce((sum, count = 0) => sum + (count ?? 0), 0) / this.#total;
  }
}
