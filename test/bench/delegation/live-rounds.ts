/**
 * The live flow's part of a decision: candidates, budgets, deny-lists, the look-out for anycast, what is remembered.
 * Crawlers answer at once and nothing is stored.
 */
import { AnycastRanges } from "#coordinator/flows/anycast-ranges";
import type { CoordinatorState } from "#coordinator/flows/coordinator-state";
import type { CrawlerRecord } from "#coordinator/flows/crawler-ports";
import { DayBudget } from "#coordinator/flows/day-budget";
import { delegateSubnet } from "#coordinator/flows/delegate-subnet";
import { DeniedTargets } from "#coordinator/flows/denied-targets";
import { watchRoom } from "#coordinator/wiring-settings";
import { defaultParameters, type PolicyName } from "#core/delegation/round";
import { asRoundId, type SubnetId } from "#core/ids";
import type { Crawlers, Target } from "./registry-world.ts";

/** Runs one round for the target, whose RTTs to the crawlers are given in their order. */
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
