/** Counts URLs by what became of them: over the last minute, and since midnight by the host's clock. */
import type { FetchOutcome } from "#protocol/result";
import type { UrlCounts } from "./status-report.ts";

const sliceMs = 1000;
const slices = 60;

type Counts = { -readonly [Name in keyof UrlCounts]: number };
type Kind = Exclude<keyof UrlCounts, "urls">;

const kinds: Readonly<Record<FetchOutcome["type"], Kind>> = {
  fetched: "fetched",
  unchanged: "unchanged",
  redirected: "redirected",
  "http-error": "httpErrors",
  "refused-by-robots": "refusedByRobots",
  "refused-address": "refusedAddresses",
  unsupported: "unsupported",
  failed: "failed",
};

export const noUrls: UrlCounts = {
  urls: 0,
  fetched: 0,
  unchanged: 0,
  redirected: 0,
  httpErrors: 0,
  refusedByRobots: 0,
  refusedAddresses: 0,
  unsupported: 0,
  failed: 0,
};

export function withUrl(counts: UrlCounts, outcome: FetchOutcome["type"]): UrlCounts {
  const kind = kinds[outcome];
  return { ...counts, urls: counts.urls + 1, [kind]: counts[kind] + 1 };
}

/** The last minute, in slices of a second. */
export class MinuteCounter {
  readonly #slices: { second: number; counts: UrlCounts }[] = [];

  /** `nowMs`: of a clock that only goes on. */
  count(outcome: FetchOutcome["type"], nowMs: number): void {
    const second = Math.floor(nowMs / sliceMs);
    const last = this.#slices.at(-1);
    if (last?.second === second) last.counts = withUrl(last.counts, outcome);
    else this.#slices.push({ second, counts: withUrl(noUrls, outcome) });
    this.#forget(second);
  }

  counts(nowMs: number): UrlCounts {
    this.#forget(Math.floor(nowMs / sliceMs));
    const sum: Counts = { ...noUrls };
    for (const { counts } of this.#slices) {
      for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += counts[name];
    }
    return sum;
  }

  #forget(second: number): void {
    while (this.#slices.length > 0 && this.#slices[0]!.second <= second - slices) this.#slices.shift();
  }
}
