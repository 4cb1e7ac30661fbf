/**
 * Who takes the subnets that a crawler gives up: those for whom the deciding rounds have measured somebody
 * else, at the least cost over all of them (design section 6), each heir within the room that it has. Where
 * the whole fleet is short of room, everybody's capacity grows alike.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import type { DelegationStore } from "../delegation/delegation.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import { withoutDenied } from "./allowed-heirs.ts";
import { type FleetLoad, roomsOf } from "./fleet-load.ts";
import { planByMinCostFlow } from "./min-cost-flow.ts";

export interface Heir {
  readonly subnetId: SubnetId;
  readonly to: CrawlerId;
  readonly rttMs: number;
}

export interface HeirPorts {
  readonly delegations: Pick<DelegationStore, "probedRtts" | "targetsFor">;
  readonly state: Pick<CoordinatorState, "delegationOf">;
  readonly denied?: DeniedTargets;
}

/** Subnets whose RTTs are read at once. */
const batchSize = 5000;

/** One for each subnet that somebody with room has measured and may have; the others are missing. */
export async function chooseHeirs(
  gone: { readonly crawlerId: CrawlerId; readonly subnets: readonly SubnetId[] },
  fleet: FleetLoad,
  ports: HeirPorts,
  now: Date,
): Promise<Heir[]> {
  const rooms = roomsOf(fleet);
  const known = await knownRtts(gone.subnets, new Set(rooms.keys()), ports);
  await withoutDenied(known, ports, now);
  const plan = planByMinCostFlow({
    crawlers: [...rooms].map(([crawlerId, room]) => ({ crawlerId, capacityPagesPerDay: room })),
    subnets: [...known].map(([subnetId, rttMs]) => ({
      subnetId,
      crawlerId: gone.crawlerId,
      loadPagesPerDay: fleet.pagesOf(subnetId),
      rttMs,
    })),
    // A prediction is no reason to take a subnet: whom nobody measured waits for a round.
    crawlerRttMs: () => undefined,
  });
  return plan.flatMap(({ subnetId, to }) => {
    const rttMs = known.get(subnetId)?.get(to);
    return rttMs === undefined ? [] : [{ subnetId, to, rttMs }];
  });
}

/** What the latest rounds measured from possible heirs; subnets that none of them measured are left out. */
async function knownRtts(
  subnets: readonly SubnetId[],
  heirs: ReadonlySet<CrawlerId>,
  { delegations, state }: HeirPorts,
): Promise<Map<SubnetId, Map<CrawlerId, number>>> {
  const known = new Map<SubnetId, Map<CrawlerId, number>>();
  const note = (subnetId: SubnetId, crawlerId: CrawlerId, rttMs: number) => {
    if (!heirs.has(crawlerId)) return;
    known.set(subnetId, (known.get(subnetId) ?? new Map<CrawlerId, number>()).set(crawlerId, rttMs));
  };
  for (const subnetId of subnets) {
    const delegation = state.delegationOf(subnetId);
    if (delegation?.runnerUpId == null || delegation.runnerUpRttMs === null) continue;
    note(subnetId, delegation.runnerUpId, delegation.runnerUpRttMs);
  }
  for (let start = 0; start < subnets.length; start += batchSize) {
    const rtts = await delegations.probedRtts(subnets.slice(start, start + batchSize));
    for (const { subnetId, crawlerId, rttMs } of rtts) note(subnetId, crawlerId, rttMs);
  }
  return known;
}
