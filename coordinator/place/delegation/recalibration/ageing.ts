/**
 * How long delegations last, and when each is checked again. Published studies see more than a tenth of addresses' locations
 * change within a month, and networks differ a hundredfold. So move rates are learned by kind of network, and rounds are
 * spent where they save most.
 *
 * Learning: a subnet moved if a round found another crawler nearer than the previous round's. Moves are modelled as a Poisson
 * process with a Gamma-distributed rate: a kind with m moves in t months, below a kind with rate r, has (m + 2) / (t + 2/r)
 * moves a month, which is r without observations and m/t with many. The kinds are all, the country and the holder. A move
 * happened at some time since the previous round, so half of that time counts as observed.
 *
 * Spending: between two checks a delegation's loss grows with the chance that its subnet has moved. With the rate h and v =
 * lost ms × pages a day after a move, a check after τ days is worth, beyond the checks made anyway,
 *
 *     w(τ) = τ·v·(1 − e^(−hτ)) − v·∫₀^τ (1 − e^(−hs)) ds = v/h · (1 − (1 + hτ)·e^(−hτ))   ms × pages
 *
 * Checks are best spent at one price: each delegation is due when w reaches it (the index of P. Whittle, Restless bandits,
 * 1988, for this process). The price makes all checks together fit the budget. A subnet that hardly ever moves is checked
 * rarely, and so is one that moves so often that the result of a check soon becomes worthless.
 */

import type { SubnetId } from "#core/ids";
import type { AgedDelegation } from "../delegation.ts";
import type { PlaceKey, Placement } from "../placement.ts";

export type RateKind = "all" | "country" | "holder";

export interface MoveCounts {
  readonly moves: number;
  readonly months: number;
  /** Summed over its moves: how much slower the former crawler was than the new one. */
  readonly lostMs: number;
}

export interface CheckOutcome {
  readonly days: number;
  readonly moved: boolean;
  /** 0 if there was no move. Null if unmeasured. */
  readonly lostMs: number | null;
}

interface MoveRate {
  readonly perMonth: number;
  /** How much slower than the nearest crawler a move makes the present one. */
  readonly lossMs: number;
}

export const daysPerMonth = 30.4;

/** Used without observations: a tenth of subnets moves per month, each losing what a crawler in a neighbouring country adds. */
export const usualRate: MoveRate = { perMonth: 0.1, lossMs: 20 };

/** Weight of the less specific kind, in moves. */
const priorMoves = 2;

const kindsInOrder = ["all", "country", "holder"] as const;

export type RateKeys = readonly (readonly [kind: RateKind, key: PlaceKey])[];

/** Ordered from the least to the most specific. */
export function rateKeysOf({ holderKey, country }: Pick<Placement, "holderKey" | "country">): RateKeys {
  const keys = { all: 0, country, holder: holderKey };
  return kindsInOrder.flatMap((kind) => {
    const key = keys[kind];
    return key === null ? [] : [[kind, key] as const];
  });
}

export class MoveRates {
  readonly #counts: Readonly<Record<RateKind, Map<PlaceKey, MoveCounts>>> = {
    all: new Map(),
    country: new Map(),
    holder: new Map(),
  };

  note(keys: RateKeys, { days, moved, lostMs }: CheckOutcome): void {
    const months = (moved ? days / 2 : days) / daysPerMonth;
    for (const [kind, key] of keys) {
      const counts = this.countsOf(kind, key);
      this.#counts[kind].set(key, {
        moves: counts.moves + (moved ? 1 : 0),
        months: counts.months + months,
        // An unmeasured move counts with the expected loss.
        lostMs: counts.lostMs + (moved ? (lostMs ?? usualRate.lossMs) : 0),
      });
    }
  }

  countsOf(kind: RateKind, key: PlaceKey): MoveCounts {
    return this.#counts[kind].get(key) ?? nothingSeen;
  }

  rateOf(keys: RateKeys): MoveRate {
    return rateFrom(keys.map(([kind, key]) => this.countsOf(kind, key)));
  }

  *all(): Generator<MoveCounts & { readonly kind: RateKind; readonly key: PlaceKey }> {
    for (const kind of kindsInOrder)
      for (const [key, counts] of this.#counts[kind]) yield { kind, key, ...counts };
  }
}

const nothingSeen: MoveCounts = { moves: 0, months: 0, lostMs: 0 };

/** Takes counts from the least to the most specific kind. */
export function rateFrom(counts: readonly MoveCounts[]): MoveRate {
  return counts.reduce<MoveRate>(
    (above, { moves, months, lostMs }) => ({
      perMonth: (moves + priorMoves) / (months + priorMoves / above.perMonth),
      lossMs: (lostMs + priorMoves * above.lossMs) / (moves + priorMoves),
    }),
    usualRate,
  );
}

interface Ageing {
  readonly perDay: number;
  readonly lossPerDay: number;
}

/** Minimum interval between checks. */
const leastDays = 1;

/**
 * Maximum interval, in mean intervals. Unchecked delegations teach nothing, and rounds are kept this long
 * (retention.roundDays) for comparison.
 */
const mostMeans = 3;

/** The price of a check, and the interval if all are checked alike. */
interface CheckPlan {
  readonly price: number;
  readonly meanDays: number;
}

export function checkAfterDays({ perDay, lossPerDay }: Ageing, { price, meanDays }: CheckPlan): number {
  const longest = Math.max(leastDays, mostMeans * meanDays);
  const share = (price * perDay) / lossPerDay;
  if (!(share < 1)) return longest;
  return Math.min(longest, Math.max(leastDays, ageWorth(share) / perDay));
}

/** Solves 1 − (1 + x)·e^(−x) = share, which grows from 0 to 1, by bisection and then Newton. */
function ageWorth(share: number): number {
  let low = 0;
  let high = 50;
  for (let step = 0; step < 20; step += 1) {
    const middle = (low + high) / 2;
    if (1 - (1 + middle) * Math.exp(-middle) < share) low = middle;
    else high = middle;
  }
  let x = high;
  for (let step = 0; step < 3; step += 1) {
    const above = 1 - (1 + x) * Math.exp(-x) - share;
    x = Math.min(high, Math.max(low, x - above / (x * Math.exp(-x))));
  }
  return x;
}

/**
 * A coarse histogram of delegations by ageing rate and loss, from which the price is found. Steps of a fifth and a half give
 * some thousand cells for a million delegations.
 */
export class AgeingTally {
  /** Sums of logarithms, so that each cell's mean represents it. */
  readonly #cells = new Map<string, { age: number; loss: number; count: number }>();
  #count = 0;

  add({ perDay, lossPerDay }: Ageing): void {
    const [age, loss] = [Math.log2(perDay), Math.log2(lossPerDay)];
    const key = `${Math.round(4 * age)},${Math.round(2 * loss)}`;
    const cell = this.#cells.get(key) ?? { age: 0, loss: 0, count: 0 };
    cell.age += age;
    cell.loss += loss;
    cell.count += 1;
    this.#cells.set(key, cell);
    this.#count += 1;
  }

  /** The price at which each is checked once in `meanDays` on average. Null if there are no delegations. */
  planFor(meanDays: number): CheckPlan | null {
    if (this.#count === 0) return null;
    let low = -40;
    let high = 60;
    for (let step = 0; step < 60; step += 1) {
      const middle = (low + high) / 2;
      if (this.#checksPerDay({ price: 2 ** middle, meanDays }) > this.#count / meanDays) low = middle;
      else high = middle;
    }
    return { price: 2 ** high, meanDays };
  }

  #checksPerDay(plan: CheckPlan): number {
    let checks = 0;
    for (const { age, loss, count } of this.#cells.values()) {
      const ageing = { perDay: 2 ** (age / count), lossPerDay: 2 ** (loss / count) };
      checks += count / checkAfterDays(ageing, plan);
    }
    return checks;
  }
}

/** "8 months", "12 days", "3 years": the mean time between two moves. */
export function moveIntervalWords({ perMonth }: Pick<MoveRate, "perMonth">): string {
  const months = 1 / perMonth;
  if (months < 2) return `${Math.max(1, Math.round(months * daysPerMonth))} days`;
  return months < 24 ? `${Math.round(months)} months` : `${Math.round(months / 12)} years`;
}

// Finds what fetch times cannot show: that another crawler has become nearer. Every decision is therefore probed again: a
// round asks the owner first (the likeliest by what was learned) and others as long as that is worth a probe. ageing.ts
// decides when, within the operator's budget of one check per delegation and number of days. Until the first pass is
// complete, each is checked after that number of days.
//
// Fetch-time alarms work in parallel. Their rounds count as checks: the delegation's age restarts, and the result counts
// among the moves.
//
// The position in age order is kept, so that subnets that cannot be probed (gone from the frontier) do not hold up others. At
// the end it restarts with the oldest.

interface RefreshPorts {
  readonly delegations: {
    decidedBefore(before: Date, behind: AgedDelegation | null, limit: number): Promise<AgedDelegation[]>;
    checkOutcomes(mostRounds: number): Promise<(CheckOutcome & { readonly subnetId: SubnetId })[]>;
    saveMoveRates(rates: MoveRates): Promise<void>;
  };
  readonly state: { placementOf(subnetId: SubnetId): Placement | null };
}

interface RefreshSettings {
  /** The budget: one check per decision in this many days. */
  readonly days: number;
  /** Maximum rounds per run. With a run a minute, 30 are 43,200 a day. */
  readonly roundsPerTurn: number;
}

const dayMs = 86_400_000;

/** Decisions examined per run. A million take eight hours. */
const lookedAt = 2000;

const learnMs = 6 * 3_600_000;

const roundsLearned = 200_000;

export class DelegationRefresh {
  readonly #ports: RefreshPorts;
  readonly #settings: RefreshSettings;
  #behind: AgedDelegation | null = null;
  #rates = new MoveRates();
  #learnedAtMs = Number.NEGATIVE_INFINITY;
  /** Tallies of the current pass and of the last complete one. */
  #tally = new AgeingTally();
  #lastTally: AgeingTally | null = null;
  #plan: CheckPlan | null = null;

  constructor(ports: RefreshPorts, settings: RefreshSettings) {
    this.#ports = ports;
    this.#settings = settings;
  }

  async next(now: Date): Promise<SubnetId[]> {
    if (now.getTime() - this.#learnedAtMs >= learnMs) await this.#learn(now);
    const plan = this.#planNow();
    const { roundsPerTurn } = this.#settings;
    const aged = await this.#ports.delegations.decidedBefore(now, this.#behind, lookedAt);
    const due: SubnetId[] = [];
    for (const one of aged) {
      if (due.length === roundsPerTurn) return due;
      this.#behind = one;
      const ageing = this.#ageingOf(one);
      this.#tally.add(ageing);
      const afterDays = plan === null ? this.#settings.days : checkAfterDays(ageing, plan);
      if (now.getTime() - one.decidedAt.getTime() > afterDays * dayMs) due.push(one.subnetId);
    }
    if (aged.length < lookedAt) this.#endPass();
    return due;
  }

  #endPass(): void {
    this.#behind = null;
    this.#lastTally = this.#tally;
    this.#tally = new AgeingTally();
    this.#plan = null;
  }

  /** Uses the last pass's tally and the operator's current budget. */
  #planNow(): CheckPlan | null {
    const { days } = this.#settings;
    if (this.#plan?.meanDays !== days) this.#plan = this.#lastTally?.planFor(days) ?? null;
    return this.#plan;
  }

  #ageingOf({ subnetId, pagesPerDay }: AgedDelegation): Ageing {
    const placement = this.#ports.state.placementOf(subnetId);
    const { perMonth, lossMs } = placement ? this.#rates.rateOf(rateKeysOf(placement)) : usualRate;
    // A subnet without fetches this week will still have some later.
    return { perDay: perMonth / daysPerMonth, lossPerDay: lossMs * (pagesPerDay + 1) };
  }

  async #learn(now: Date): Promise<void> {
    const { delegations, state } = this.#ports;
    const rates = new MoveRates();
    for (const outcome of await delegations.checkOutcomes(roundsLearned)) {
      const placement = state.placementOf(outcome.subnetId);
      if (placement !== null) rates.note(rateKeysOf(placement), outcome);
    }
    await delegations.saveMoveRates(rates);
    this.#rates = rates;
    this.#learnedAtMs = now.getTime();
  }
}
