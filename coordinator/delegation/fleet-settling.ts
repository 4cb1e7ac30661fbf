/**
 * Whether a new fleet is ready for its first probe round: the first delegations steer all later ones, so they
 * wait until the expected crawlers are there and have measured each other, but not for ever.
 */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorState } from "./state.ts";

export interface SettlingSettings {
  readonly expectedCrawlers: number;
  readonly settleMs: number;
}

/** Pairs of crawlers that have to be measured, as a share. */
const enoughCoverage = 0.9;

export class FleetSettling {
  readonly #settings: SettlingSettings;
  #firstSeenMs: number | null = null;
  #settled = false;

  constructor(settings: SettlingSettings) {
    this.#settings = settings;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Once settled, always settled. */
  isSettled(online: readonly CrawlerId[], state: CoordinatorState, nowMs: number): boolean {
    if (this.#settled) return true;
    if (online.length === 0) return false;
    this.#firstSeenMs ??= nowMs;
    const complete =
      online.length >= this.#settings.expectedCrawlers && state.rttCoverage(online) >= enoughCoverage;
    this.#settled = complete || nowMs - this.#firstSeenMs >= this.#settings.settleMs;
    return this.#settled;
  }
}
