/** What a change of policies would come to, and what it is computed from. */

import type { AlarmClock } from "#core/clock";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { CrawlerStore } from "../../crawlers/crawler-store.ts";
import type { Placement } from "../../delegation/placement.ts";
import type { PolicyName, PolicySettings } from "../schema.ts";

/** One number before and after the change; null: it cannot be told. */
export interface PolicyFigure {
  /** For programs: camelCase. */
  readonly name: string;
  readonly words: string;
  /** As it is written after the number; empty: a count. */
  readonly unit: string;
  readonly before: number | null;
  readonly after: number | null;
}

export interface PolicyEffect {
  readonly title: string;
  readonly figures: readonly PolicyFigure[];
  /** What it was computed from. */
  readonly basis: string;
  /** What it cannot tell, each in a sentence. */
  readonly limits: readonly string[];
}

export interface SampledRounds {
  readonly crawlers: readonly { readonly crawlerId: CrawlerId; readonly placement: Placement }[];
  /** Oldest first; of a subnet the latest. */
  readonly rounds: readonly (PastRound & {
    readonly crawlerId: CrawlerId;
    /** Probes that it cost then. */
    readonly paidProbes: number;
  })[];
}

export interface PreviewPorts {
  /** The latest rounds, so many at most. */
  readonly samples: (most: number) => Promise<SampledRounds>;
  readonly crawlers: Pick<CrawlerStore, "rtts">;
  readonly clock: AlarmClock;
  readonly log: Log;
}

export interface PolicyStep {
  readonly before: PolicySettings;
  readonly after: PolicySettings;
  /** What changes. */
  readonly names: ReadonlySet<PolicyName>;
}

export interface PastRound {
  readonly placement: Placement;
  /** What those said who were asked then, in ms; null: they had no answer. */
  readonly rttsMs: ReadonlyMap<CrawlerId, number | null>;
}
