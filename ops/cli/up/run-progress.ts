/** The live line of a run: sites delegated, probes per subnet, pages, rate, time left. */
import type { FrontierProgress } from "#coordinator/frontier/frontier";

export interface RunMeasure {
  readonly progress: FrontierProgress;
  /** Pages per second over the last seconds. */
  readonly pagesPerSecond: number;
  readonly etaSeconds: number | null;
  readonly elapsedSeconds: number;
  readonly crawlersOnline: number;
}

const windowSeconds = 15;

/** Keeps the last seconds of counts, so that the rate is of now and not of the whole run. */
export class RunClock {
  readonly #startMs: number;
  readonly #samples: { readonly atMs: number; readonly pages: number }[] = [];
  #basePages: number | null = null;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** `expectedPages` is what the run is expected to fetch in all; null when nobody can know. */
  measure(
    progress: FrontierProgress,
    now: { ms: number; crawlersOnline: number; expectedPages: number | null },
  ): RunMeasure {
    this.#basePages ??= progress.pages;
    this.#samples.push({ atMs: now.ms, pages: progress.pages });
    while (this.#samples.length > 2 && now.ms - this.#samples[0]!.atMs > windowSeconds * 1000)
      this.#samples.shift();
    const oldest = this.#samples[0]!;
    const seconds = (now.ms - oldest.atMs) / 1000;
    const pagesPerSecond = seconds > 0 ? (progress.pages - oldest.pages) / seconds : 0;
    const left = Math.max(progress.urlsPending, (now.expectedPages ?? 0) - progress.pages);
    return {
      progress,
      pagesPerSecond,
      etaSeconds: pagesPerSecond > 0 ? left / pagesPerSecond : null,
      elapsedSeconds: (now.ms - this.#startMs) / 1000,
      crawlersOnline: now.crawlersOnline,
    };
  }
}

export function progressText(measure: RunMeasure, crawlers: number): string {
  const { progress } = measure;
  const perSubnet = progress.rounds > 0 ? (progress.probes / progress.rounds).toFixed(2) : "–";
  const parts = [
    `${clock(measure.elapsedSeconds)}`,
    `crawlers ${measure.crawlersOnline}/${crawlers}`,
    `sites ${number(progress.hostsDelegated)}/${number(progress.hosts)} delegated`,
    `${perSubnet} probes/subnet`,
    `${number(progress.pages)} pages`,
    `${measure.pagesPerSecond.toFixed(1)}/s`,
    measure.etaSeconds === null ? "ETA –" : `ETA ${clock(measure.etaSeconds)}`,
  ];
  return parts.join(" · ");
}

const number = (value: number) => value.toLocaleString("en");

function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const minutes = Math.floor(whole / 60);
  return `${minutes}:${String(whole % 60).padStart(2, "0")}`;
}
