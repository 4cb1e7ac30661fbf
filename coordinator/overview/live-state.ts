/** What the overview and the metrics show of the coordinator as it runs. */

import type { FleetSettling } from "../delegation/measure-peers.ts";
import type { DelegationQueue } from "../delegation/queue.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { CrawlerGateway } from "../gateway/gateway.ts";
import type { Counters } from "./counters.ts";
import type { LiveState } from "./overview.ts";

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
