/** The effect of a policy change and the data it is computed from. */

import type { AlarmClock } from "#core/clock";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { CrawlerStore } from "../../../place/crawlers/crawler-store.ts";
import type { Placement } from "../../../place/delegation/placement.ts";
import type { PolicyName, PolicySettings } from "../schema.ts";

export interface SampledRounds {
  readonly crawlers: readonly { readonly crawlerId: CrawlerId; readonly placement: Placement }[];
  /** Oldest first; the latest round of each subnet. */
  readonly rounds: readonly (PastRound & {
    readonly crawlerId: CrawlerId;
    /** The probes that it took then. */
    readonly paidProbes: number;
  })[];
}

export interface PreviewPorts {
  /** Returns the latest rounds, at most this many. */
  readonly samples: (most: number) => Promise<SampledRounds>;
  readonly crawlers: Pick<CrawlerStore, "rtts">;
  readonly clock: AlarmClock;
  readonly log: Log;
}

export interface PolicyStep {
  readonly before: PolicySettings;
  readonly after: PolicySettings;
  /** The changed policies. */
  readonly names: ReadonlySet<PolicyName>;
}

export interface PastRound {
  readonly placement: Placement;
  /** The answers of probed crawlers in ms; null for no answer. */
  readonly rttsMs: ReadonlyMap<CrawlerId, number | null>;
}
