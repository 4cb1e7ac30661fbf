/**
 * A crawler is gone: its leases return, and each of its subnets goes to the nearest of the others that the
 * deciding round already measured, without a new probe. Subnets of which nothing is known of the others
 * are left for a new probe round.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { CoordinatorState } from "./coordinator-state.ts";
import type { DelegationMove, DelegationStore, FrontierStore } from "./ports.ts";

export interface ReplaceCrawlerPorts {
  readonly delegations: Pick<DelegationStore, "move" | "probedRtts">;
  readonly frontier: Pick<FrontierStore, "returnLeasesOf">;
  readonly state: CoordinatorState;
  readonly online: () => readonly CrawlerId[];
}

export interface Replaced {
  readonly returnedLeases: number;
  readonly moved: readonly SubnetId[];
  /** To be probed anew. */
  readonly orphans: readonly SubnetId[];
}

const batchSize = 1000;

export async function replaceCrawler(
  gone: CrawlerId,
  ports: ReplaceCrawlerPorts,
  now: Date,
): Promise<Replaced> {
  const returnedLeases = await ports.frontier.returnLeasesOf(gone, now);
  const subnets = ports.state.subnetsOf(gone);
  const heirs = new Set(ports.online().filter((crawlerId) => mayInherit(crawlerId, gone, ports.state)));
  const moved: SubnetId[] = [];
  const orphans: SubnetId[] = [];
  for (let start = 0; start < subnets.length; start += batchSize) {
    const batch = subnets.slice(start, start + batchSize);
    const moves = await runnersUp(batch, gone, heirs, ports);
    const planned = new Map(moves.map((move) => [move.subnetId, move]));
    const made = await ports.delegations.move(moves, now);
    for (const subnetId of made) ports.state.moveDelegation(planned.get(subnetId) as DelegationMove);
    moved.push(...made);
    orphans.push(...batch.filter((subnetId) => !planned.has(subnetId)));
  }
  return { returnedLeases, moved, orphans };
}

function mayInherit(crawlerId: CrawlerId, gone: CrawlerId, state: CoordinatorState): boolean {
  return crawlerId !== gone && state.crawler(crawlerId)?.state !== "draining";
}

async function runnersUp(
  subnetIds: readonly SubnetId[],
  gone: CrawlerId,
  heirs: ReadonlySet<CrawlerId>,
  ports: ReplaceCrawlerPorts,
): Promise<DelegationMove[]> {
  const best = new Map<SubnetId, { crawlerId: CrawlerId; rttMs: number }>();
  for (const { subnetId, crawlerId, rttMs } of await ports.delegations.probedRtts(subnetIds)) {
    if (!heirs.has(crawlerId)) continue;
    if (rttMs < (best.get(subnetId)?.rttMs ?? Number.POSITIVE_INFINITY))
      best.set(subnetId, { crawlerId, rttMs });
  }
  return [...best].map(([subnetId, { crawlerId, rttMs }]) => ({
    subnetId,
    from: gone,
    to: crawlerId,
    cause: "crawler-left",
    reason: `its crawler is gone; this one was the next best, at ${rttMs.toFixed(1)} ms`,
    rttMs,
  }));
}
