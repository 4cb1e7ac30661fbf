/**
 * What the coordinator has to know of a host besides its pages, told with the slice's results, each thing once:
 * what became of its robots.txt, how fast it may be asked, how long its name took to resolve.
 */
import { maxMilliseconds } from "#protocol/fields";
import type { FetchResult, HostPaceReport, RobotsReport } from "#protocol/result";

export interface HostState {
  /** How long the host wants to be left alone from now on. */
  readonly waitMs: number;
  readonly pace: HostPaceReport | null;
  /** How long its name took to resolve, when no result has said so yet. */
  readonly tellResolved: () => number | null;
}

export class HostNews {
  #robots: RobotsReport | null = null;
  #toldPace: HostPaceReport | null = null;

  /** To be told with the next result. */
  robotsFound(report: RobotsReport | null): void {
    this.#robots = report ?? this.#robots;
  }

  /** The result with what there is to tell. */
  tell(result: Omit<FetchResult, "hostDelayMs">, { waitMs, pace, tellResolved }: HostState): FetchResult {
    const robots = this.#robots;
    this.#robots = null;
    const news = newsOf(pace, this.#toldPace);
    this.#toldPace = news ?? this.#toldPace;
    const { timing } = result;
    const dnsMs = timing.connectMs === null ? timing.dnsMs : (timing.dnsMs ?? tellResolved());
    return {
      ...result,
      timing: { ...timing, dnsMs },
      hostDelayMs: Math.min(maxMilliseconds, Math.max(0, Math.ceil(waitMs))),
      ...(news === null ? {} : { pace: news }),
      ...(robots === null ? {} : { robots }),
    };
  }
}

/** A pace is news when something that robots.txt or the host demanded has changed, or its usual time by a quarter. */
function newsOf(pace: HostPaceReport | null, last: HostPaceReport | null): HostPaceReport | null {
  if (pace === null || last === null) return pace;
  const sameDemands = pace.crawlDelayMs === last.crawlDelayMs && pace.backOffMs === last.backOffMs;
  return sameDemands && Math.abs(pace.usualMs - last.usualMs) * 4 <= last.usualMs ? null : pace;
}
