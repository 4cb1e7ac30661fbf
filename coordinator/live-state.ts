/** What the overview and the metrics show of the coordinator as it runs. */
import type { Counters } from "./counters.ts";
import type { CoordinatorState } from "./flows/coordinator-state.ts";
import type { DelegationQueue } from "./flows/delegation-queue.ts";
import type { FleetSettling } from "./flows/fleet-settling.ts";
import type { LiveState } from "./flows/show-overview.ts";
import type { CrawlerGateway } from "./net/crawler-gateway.ts";

export interface LiveParts {
  readonly startedAt: Date;
  readonly gateway: CrawlerGateway;
  readonly queue: DelegationQueue;
  readonly counters: Counters;
  readonly settling: FleetSettling;
  readonly state: Pick<CoordinatorState, "generation">;
}

export function liveState({ startedAt, gateway, queue, counters, settling, state }: LiveParts): LiveState {
  const sessions = gateway.online().length;
  const phase =
    sessions === 0 ? "waiting for crawlers" : settling.settled ? "crawling" : "crawlers measure each other";
  return {
    startedAt,
    phase,
    sessions,
    roundsUnderWay: queue.running,
    probesUnderWay: gateway.probesUnderWay,
    totals: counters.totals,
    treeGeneration: state.generation,
  };
}
