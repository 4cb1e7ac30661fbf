/**
 * For tests of finer delegations: a leaf 5.1.1.0/24 with several hosts, arriving results, and ports over real stores
 * with a manual clock.
 */

import type { Fleet, ResultBatch } from "#coordinator/place/crawlers/crawler";
import type { FinerRound } from "#coordinator/place/delegation/overrides/override";
import { createFinerDelegationStore } from "#coordinator/place/delegation/overrides/override-store";
import { defaultParameters } from "#coordinator/place/delegation/policies/round";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { FlowWorld } from "../../support/flow-world.ts";
import {
  arrivedResult,
  noon,
  roundOf,
  scope,
  secondsAfterNoon,
  seeds,
  spoolId,
} from "../../support/store-world.ts";

/** What of these fetches arrives: `[host, address, connectMs]`, by one crawler. */
export function fetchesBy(
  crawlerId: CrawlerId,
  ...fetches: readonly (readonly [host: string, address: string, connectMs: number])[]
): ResultBatch {
  const results = fetches.map(([host, address, connectMs], index) => {
    const timing = { dnsMs: null, connectMs, tlsMs: null, firstByteMs: 1, totalMs: connectMs + 5 };
    const { result, leaseId } = arrivedResult({
      sequence: index + 1,
      leaseId: "1",
      url: `http://${host}/`,
      result: { address, timing },
    });
    return { sequence: index + 1, leaseId, result, wireBytes: 100 };
  });
  return { crawlerId, spoolId, results };
}

export async function finerWorld(world: FlowWorld) {
  const finer = createFinerDelegationStore(world.pool);
  const clock = { seconds: 0 };
  const rounds: FinerRound[] = [];

  /** A host at an address of a /24 in 5.1.0.0/16, resolved and due. */
  const host = async (name: string, address: string): Promise<SubnetId> => {
    const [, , third] = address.split(".");
    const subnetId = await world.subnet(`5.1.${third}.0`, `5.1.${third}.255`);
    await world.frontier.admit(seeds(`http://${name}/`), scope, noon);
    await world.resolve(name, address, subnetId);
    return subnetId;
  };

  /** The subnet is this crawler's, that measured it at so many ms. */
  const delegated = async (subnetId: SubnetId, crawlerId: CrawlerId, rttMs: number): Promise<void> => {
    await world.delegations.saveRound(roundOf(subnetId, [[crawlerId, rttMs]]));
  };

  const ports = async (fleet: Fleet) => ({
    state: await world.state(),
    fleet,
    finer,
    random: () => 0,
    now: () => secondsAfterNoon(clock.seconds),
    excluded: () => new Set<CrawlerId>(),
    settings: {
      policy: "exhaustive" as const,
      parameters: defaultParameters,
      probe: { method: "connect" as const, tries: 3, deadlineMs: 3000 },
      allowSpecialPurpose: false,
    },
    onDecided: (round: FinerRound) => void rounds.push(round),
  });

  const leased = async (crawlerId: CrawlerId): Promise<string[]> =>
    (await world.lease(crawlerId, secondsAfterNoon(clock.seconds))).map((lease) => lease.host).sort();

  return { finer, clock, rounds, host, delegated, ports, leased };
}
