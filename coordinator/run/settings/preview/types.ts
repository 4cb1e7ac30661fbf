/** What a change of policies would come to, and what it is computed from. */

import type { AlarmClock } from "#core/clock";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { CrawlerStore } from "../../../place/crawlers/crawler-store.ts";
import type { Placement } from "../../../place/delegation/placement.ts";
import type { PolicyName, PolicySettings } from "../schema.ts";

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
