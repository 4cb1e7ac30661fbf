/**
 * ipmicra: the paper's delegation procedure (section 4.3). If one crawler knows the company, it takes the subnet without a
 * probe. If several do, they are asked until one is under the threshold. Otherwise the tree is climbed: each step asks the
 * crawlers that own the subnet, its children or its descendants until one is under the threshold. After all were asked, the
 * fastest wins.
 *
 * Where the paper leaves room:
 * - If several crawlers know the company and none is under the threshold, the climb continues (the text says "the fastest",
 *   then "only if this search is unsuccessful"). No crawler is asked twice.
 * - The climb starts at the subnet itself, as in the worked example, which first asks the children of subnet 8.
 * - Within a step the subnet's own crawler comes first, as in the pseudo-code, then its children's, then its descendants',
 *   each in order of ownership.
 * - The root is the whole space, where every owner is asked.
 * - A crawler of the company that is no candidate does not count. Candidates that own nothing are asked last.
 */
import type { CrawlerId } from "#core/ids";
import type { CandidateFleet } from "../fleet.ts";
import { type CrawlerCount, climbLevels, type DelegationKnowledge, priorOf } from "../knowledge.ts";
import type { Placement } from "../placement.ts";
import type { ReasonOf } from "./reason.ts";
import {
  askedCrawlers,
  type DelegationPolicy,
  decidedAtOnce,
  decidedByPrior,
  decidedFor,
  fastestIndex,
  looksSilent,
  openState,
  probeStep,
  type RoundInput,
  type RoundState,
  type RoundStep,
  rttAt,
  withObservation,
} from "./round.ts";

type AskedAt = ReasonOf<"under-threshold">["level"];

interface IpmicraState extends RoundState {
  /** The only crawler of the same company, if there is exactly one. */
  readonly sole: CrawlerCount | null;
  /** All candidates in asking order, fixed at the start of the round. */
  readonly queue: readonly { readonly crawlerId: CrawlerId; readonly level: AskedAt }[];
}

export const ipmicraPolicy = {
  name: "ipmicra",
  words: "asks crawlers one after another until one answers below the threshold",
  usesEarlierRounds: true,
  start(input) {
    const { placement, fleet, knowledge } = input;
    const company = companyOwners(input);
    return {
      ...openState("ipmicra", input, priorOf(placement, fleet, knowledge)),
      sole: company.length === 1 ? company[0]! : null,
      queue: askingOrder(placement, fleet, knowledge),
    };
  },
  step(state) {
    return decidedAtOnce(state) ?? soleOfCompany(state) ?? underThreshold(state) ?? nextOrFastest(state);
  },
  observe: withObservation,
} as const satisfies DelegationPolicy<IpmicraState>;

function soleOfCompany(state: IpmicraState): RoundStep | null {
  if (state.sole === null) return null;
  const index = state.fleet.indexOf.get(state.sole.crawlerId)!;
  return decidedFor(state, index, { type: "same-company", subnetsOwned: state.sole.count });
}

function underThreshold(state: IpmicraState): RoundStep | null {
  const fastest = fastestIndex(state);
  if (fastest < 0) return null;
  const { thresholdMs } = state.parameters;
  const rttMs = rttAt(state, fastest)!;
  if (rttMs >= thresholdMs) return null;
  const level = state.queue.find(({ crawlerId }) => crawlerId === state.fleet.candidates[fastest])!.level;
  return decidedFor(state, fastest, {
    type: "under-threshold",
    thresholdMs,
    rttMs,
    level,
    ...askedCrawlers(state),
  });
}

/** The queue is asked from its head, so the crawlers asked so far are its beginning. */
function nextOrFastest(state: IpmicraState): RoundStep {
  if (looksSilent(state)) return decidedByPrior(state);
  const next = state.queue[state.probes.length];
  if (next !== undefined) return probeStep(state, next.crawlerId);
  const fastest = fastestIndex(state);
  if (fastest < 0) return decidedByPrior(state);
  const { thresholdMs } = state.parameters;
  const rttMs = rttAt(state, fastest)!;
  return decidedFor(state, fastest, { type: "fastest-of-all", thresholdMs, rttMs, ...askedCrawlers(state) });
}

function companyOwners({ placement, fleet, knowledge }: RoundInput): CrawlerCount[] {
  if (placement.holderKey === null) return [];
  const owners = knowledge.owners({ kind: "holder", key: placement.holderKey });
  return owners.filter(({ crawlerId }) => fleet.indexOf.has(crawlerId));
}

function askingOrder(
  placement: Placement,
  fleet: CandidateFleet,
  knowledge: DelegationKnowledge,
): { crawlerId: CrawlerId; level: AskedAt }[] {
  const order = new Map<CrawlerId, AskedAt>();
  const add = (crawlerId: CrawlerId, level: AskedAt) => {
    if (fleet.indexOf.has(crawlerId) && !order.has(crawlerId)) order.set(crawlerId, level);
  };
  if (placement.holderKey !== null) {
    knowledge.eachOwner({ kind: "holder", key: placement.holderKey }, (id) => add(id, "company"));
  }
  const steps = climbLevels(placement);
  steps.forEach((levels, height) => {
    const at = height === 0 ? "subnet" : height < steps.length - 1 ? "ancestor" : "root";
    for (const level of levels) knowledge.eachOwner(level, (id) => add(id, at));
  });
  for (const crawlerId of fleet.candidates) add(crawlerId, "root");
  return Array.from(order, ([crawlerId, level]) => ({ crawlerId, level }));
}
