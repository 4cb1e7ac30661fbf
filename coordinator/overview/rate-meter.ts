/** Rates per minute from counts that only grow: a ring of samples, so that no table has to be asked. */
import type { LiveTotals, Rates } from "./overview.ts";

const stepSeconds = 5;
/** Ten minutes of history. */
const keptSamples = 121;
const rateWindowMs = 60_000;

interface Sample {
  readonly atMs: number;
  readonly totals: LiveTotals;
}

/** `sample` is called every `RateMeter.stepMs`; `rates` whenever somebody looks. */
export class RateMeter {
  static readonly stepMs = stepSeconds * 1000;
  readonly #samples: Sample[] = [];

  sample(totals: LiveTotals, atMs: number): void {
    this.#samples.push({ atMs, totals });
    if (this.#samples.length > keptSamples) this.#samples.shift();
  }

  rates(totals: LiveTotals, nowMs: number): Rates {
    const since = this.#samples.find((sample) => sample.atMs >= nowMs - rateWindowMs) ?? {
      atMs: nowMs,
      totals,
    };
    const minutes = (nowMs - since.atMs) / 60_000;
    const perMinute = (now: number, then: number) =>
      minutes > 0 ? Math.round((Math.max(0, now - then) / minutes) * 10) / 10 : 0;
    return {
      pagesPerMinute: perMinute(totals.pages, since.totals.pages),
      fetchedBytesPerMinute: perMinute(totals.fetchedBytes, since.totals.fetchedBytes),
      probesPerMinute: perMinute(totals.probes, since.totals.probes),
      pagesHistory: this.#pagesHistory(),
      stepSeconds,
    };
  }

  #pagesHistory(): number[] {
    return this.#samples.slice(1).map((sample, index) => {
      const before = this.#samples[index] ?? sample;
      const minutes = (sample.atMs - before.atMs) / 60_000;
      if (minutes <= 0) return 0;
      return Math.round((Math.max(0, sample.totals.pages - before.totals.pages) / minutes) * 10) / 10;
    });
  }
}
