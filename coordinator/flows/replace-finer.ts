/**
 * What crawlers have besides whole subnets, when they are gone or drained: hosts and parts go to the nearest of
 * the others by their latest round, without a new probe; of which nothing is known, to the subnet's crawler
 * until they are probed again. To be called after the subnets have gone to others.
 */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorState } from "./coordinator-state.ts";
import type { FinerDelegationStore } from "./finer-delegations.ts";

export interface ReplaceFinerPorts {
  readonly finer: Pick<FinerDelegationStore, "crawlers" | "inherit">;
  readonly state: CoordinatorState;
  /** Crawlers that may take something now. */
  readonly online: () => readonly CrawlerId[];
}

export interface DepartureTimes {
  /** A crawler is gone when it has been away for longer. */
  readonly departureMs: number;
  /** When this coordinator started: nobody could come back before. */
  readonly since: Date;
  readonly now: Date;
}

/** One pass over all crawlers that are leaving; returns how many hosts and parts moved. */
export async function replaceFiner(ports: ReplaceFinerPorts, times: DepartureTimes): Promise<number> {
  const owners = await ports.finer.crawlers();
  const leaving = owners.filter((crawlerId) => isLeaving(crawlerId, ports.state, times));
  if (leaving.length === 0) return 0;
  const heirs = ports
    .online()
    .filter((crawlerId) => !leaving.includes(crawlerId) && !isDrained(crawlerId, ports.state));
  if (heirs.length === 0) return 0;
  let moved = 0;
  for (const crawlerId of leaving) {
    moved += (await ports.finer.inherit(crawlerId, heirs, times.now)).moved;
  }
  return moved;
}

function isLeaving(crawlerId: CrawlerId, state: CoordinatorState, times: DepartureTimes): boolean {
  const crawler = state.crawler(crawlerId);
  if (crawler === null || isDrained(crawlerId, state)) return true;
  if (crawler.state !== "offline") return false;
  const lastSeenMs = Math.max(times.since.getTime(), crawler.lastSeenAt?.getTime() ?? 0);
  return times.now.getTime() - lastSeenMs > times.departureMs;
}

function isDrained(crawlerId: CrawlerId, state: CoordinatorState): boolean {
  const crawler = state.crawler(crawlerId);
  return crawler !== null && (crawler.drainingSince !== null || crawler.state === "draining");
}
