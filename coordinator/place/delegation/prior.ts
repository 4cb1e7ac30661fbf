/**
 * The prior probability that each candidate is the nearest, by backing off over the tree (design section 5). Each key
 * has the weight of its evidence, s/(s+1) for s past delegations, and leaves the rest to the next, less specific key.
 *
 * Only candidates count: an absent crawler's subnets do not show which of the others is near.
 */
import type { CandidateFleet } from "./fleet.ts";
import { backOffLevels, type DelegationKnowledge } from "./knowledge.ts";
import type { Placement, PublishedPlace } from "./placement.ts";

export interface Prior {
  /** Per candidate; the sum is at most 1, and the remainder is belief that no key claimed. */
  readonly shares: Float64Array;
  /**
   * 1/(s+1) for s past delegations of the same holder (without a holder, of the next less specific subnet): 1 when
   * new, near 0 when well known. Published places do not affect it: they tell where to ask, not how good earlier
   * choices were (test/bench/results/place-labels.md).
   */
  readonly unfamiliarity: number;
  /** Published places with other known subnets. */
  readonly published?: readonly KnownPlace[];
}

/** A published place where candidates own other subnets. */
interface KnownPlace extends PublishedPlace {
  /** 0 to 1. */
  readonly trust: number;
  readonly subnets: number;
}

export function priorOf(
  placement: Placement,
  fleet: CandidateFleet,
  knowledge: DelegationKnowledge,
  /** Trust in a source of published places, 0 to 1. */
  trustIn: (source: string) => number = () => 1,
): Prior {
  const shares = new Float64Array(fleet.candidates.length);
  let rest = 1;
  let unfamiliarity = 1;
  const published: KnownPlace[] = [];
  for (const { source, place } of placement.published ?? []) {
    const level = { kind: "published", key: place } as const;
    const total = knowledge.totalAmong(fleet, level);
    if (total === 0) continue;
    const trust = trustIn(source);
    published.push({ source, place, trust, subnets: total });
    const spoken = (trust * total) / (total + 1);
    knowledge.addAmong(fleet, level, (rest * spoken) / total, shares);
    rest *= 1 - spoken;
  }
  const closest = placement.holderKey ?? placement.ancestorKeys[0];
  for (const level of backOffLevels(placement)) {
    const total = knowledge.totalAmong(fleet, level);
    if (total > 0) {
      knowledge.addAmong(fleet, level, rest / (total + 1), shares);
      rest /= total + 1;
    }
    if (level.key === closest && level.kind === (placement.holderKey === null ? "subnet" : "holder")) {
      unfamiliarity = 1 / (total + 1);
    }
  }
  return { shares, unfamiliarity, ...(published.length > 0 && { published }) };
}
