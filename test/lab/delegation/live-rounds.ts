/**
 * The live flow's part of a decision: candidates, budgets, deny-lists, detection of anycast, and the stored knowledge. Crawlers
 * answer at once and nothing is written.
 */

import { type CrawlerRecord, DayBudget, watchRoom } from "#coordinator/place/crawlers/crawler";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import type { PolicyName } from "#coordinator/place/delegation/policies/policies";
import { defaultParameters } from "#coordinator/place/delegation/policies/round";
import { delegateSubnet } from "#coordinator/place/delegation/probe-round";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import { asRoundId, type SubnetId } from "#core/ids";
import type { Crawlers, Target } from "./registry-world.ts";

/** Runs one round for the target with these RTTs to the crawlers, in their order. */
export function liveRounds(
  state: CoordinatorState,
  { ids, homes }: Crawlers,
  policy: PolicyName,
): (target: Target, answersMs: Float32Array) => Promise<void> {
  state.setCrawlers(ids.map((crawlerId, index) => recordOf(crawlerId, homes[index]!)));
  const [budget, denied, anycast] = [new DayBudget(), new DeniedTargets(), new AnycastRanges()];
  const now = () => new Date();
  const room = watchRoom(state, budget);
  let answersNowMs: Float32Array;
  const ports = {
    state,
    denied,
    anycast,
    now,
    random: () => 0.5,
    excluded: () => room(now()),
    delegations: { saveRound: async () => asRoundId(1), delegateProvisionally: async () => false },
    fleet: {
      online: () => [...ids],
      probe: async (crawlerId: number) => {
        const rttMs = answersNowMs[crawlerId - 1]!;
        return { type: "measured" as const, method: "connect" as const, rttMs, tries: 3 };
      },
    },
    settings: {
      policy,
      parameters: defaultParameters,
      probe: { method: "connect" as const, tries: 3, deadlineMs: 3000 },
      allowSpecialPurpose: true,
    },
  };
  return async ({ address }, answersMs) => {
    answersNowMs = answersMs;
    const subnetId = state.subnetOf(address) as SubnetId;
    const subnet = { subnetId, url: "http://a.example/", host: "a.example", address };
    await delegateSubnet(subnet, "new-subnet", ports);
  };
}

function recordOf(crawlerId: CrawlerRecord["crawlerId"], home: Crawlers["homes"][number]): CrawlerRecord {
  return {
    ...home,
    crawlerId,
    name: `crawler ${crawlerId}`,
    address: null,
    subnetId: null,
    place: null,
    pagesPerDay: 100_000,
    bytesPerDay: 1e12,
    concurrentHosts: 10,
    probeMethods: ["connect", "head"],
    state: "online",
    lastSeenAt: null,
    offlineReason: null,
    drainingSince: null,
    joiningSince: null,
  };
}
