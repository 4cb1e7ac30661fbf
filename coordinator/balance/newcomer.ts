/**
 * Which subnets of others a crawler that joined is worth asking about (design section 5, turned round: there a
 * subnet looks for its crawler, here a crawler for its subnets).
 *
 * Two things speak for a subnet. The triangle: crawler a measured y ms to it and is D ms from the newcomer,
 * so the newcomer is at least about |D − y| from it, and likely near it where D ≈ y. And what was found out so
 * far: how often the newcomer was nearer among the subnets of the same holder, ancestors, country, /8; the
 * first such finding is its own subnet, in which it stands.
 *
 *   promise = P(nearer) · what it would save if it were,   in ms of RTT per page
 */
import { backOffLevels, type Level } from "../delegation/knowledge.ts";
import type { Placement } from "../delegation/placement.ts";

/** What somebody measured to a subnet, and how far that crawler is from the newcomer; null: not known. */
export interface MeasuredNearby {
  readonly rttMs: number;
  readonly peerRttMs: number | null;
}

export interface PossibleGain {
  readonly placement: Placement;
  /** What its present crawler measured. */
  readonly ownerRttMs: number;
  /** The present crawler and whoever else measured it. */
  readonly measured: readonly MeasuredNearby[];
}

/** A newcomer takes a subnet when it is nearer by more than this: less is no reason to move. */
export const joinMarginMs = 5;
/** Of the triangle's bound, what is believed: less than in a round, where others are left to be asked. */
const trust = 0.6;
/** Fit of the triangle, as the policy `nearest` weighs it. */
const fitScaleMs = 5;
const fitScalePerMs = 0.3;
/** How well the triangle fits where the newcomer is not near: measured over fleets drawn from real matrices. */
const chanceFit = 0.25;
/** Of the levels above, the least that the newcomer can hope for anywhere. */
const leastShare = 0.02;

/** Ms that the newcomer can save at the most, by the triangle; negative where it cannot be nearer. */
export function possibleSavingMs(ownerRttMs: number, measured: readonly MeasuredNearby[]): number {
  let leastMs = 0;
  for (const { rttMs, peerRttMs } of measured) {
    if (peerRttMs !== null) leastMs = Math.max(leastMs, trust * Math.abs(peerRttMs - rttMs));
  }
  return ownerRttMs - leastMs;
}

export class NewcomerFindings {
  readonly #counts = new Map<string, { tried: number; won: number }>();

  /** `own`: where the newcomer stands; null when that is not known. */
  constructor(own: Placement | null) {
    if (own !== null) this.note(own, true);
  }

  /** The newcomer was asked about this subnet and was nearer by the margin, or was not. */
  note(placement: Placement, isNearer: boolean): void {
    for (const level of backOffLevels(placement)) {
      const key = keyOf(level);
      const count = this.#counts.get(key) ?? { tried: 0, won: 0 };
      count.tried += 1;
      count.won += isNearer ? 1 : 0;
      this.#counts.set(key, count);
    }
  }

  /** Ms that a page of this subnet can be expected to save; 0 where the newcomer cannot be nearer by the margin. */
  promiseMs({ placement, ownerRttMs, measured }: PossibleGain): number {
    const savingMs = possibleSavingMs(ownerRttMs, measured);
    if (savingMs <= joinMarginMs) return 0;
    let fit = 1;
    for (const { rttMs, peerRttMs } of measured) {
      // Where the crawlers have not measured each other, the answer neither fits nor rules out.
      const gapMs = peerRttMs === null ? rttMs : Math.abs(peerRttMs - rttMs);
      fit /= 1 + (gapMs / (fitScaleMs + fitScalePerMs * rttMs)) ** 2;
    }
    const before = this.#shareAround(placement);
    const likelihood = fit / chanceFit ** measured.length;
    const nearer = (before * likelihood) / (before * likelihood + 1 - before);
    return (nearer * savingMs) / 2;
  }

  /** How often it was nearer around here: each level speaks with the weight of its evidence, s / (s + 1). */
  #shareAround(placement: Placement): number {
    let share = 0;
    let rest = 1;
    for (const level of backOffLevels(placement)) {
      const count = this.#counts.get(keyOf(level));
      if (count === undefined) continue;
      share += (rest * count.won) / (count.tried + 1);
      rest /= count.tried + 1;
    }
    return leastShare + (1 - 2 * leastShare) * share;
  }
}

const keyOf = ({ kind, key }: Level) => `${kind} ${key}`;
