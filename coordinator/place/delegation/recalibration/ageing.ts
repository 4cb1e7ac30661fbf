/**
 * How long delegations last, and which of them are checked again when. Published studies see more than a tenth of the
 * locations of addresses change within a month, and networks differ a hundredfold; so how often subnets move is learned
 * by kind of network, and rounds are spent where they save most.
 *
 * Learned: a subnet moved when a round found another crawler nearer than the one that the round before had found. Moves are
 * taken for a Poisson process, its rate for Gamma distributed: of a kind with m moves seen in t months, below a kind with
 * the rate r, (m + 2) / (t + 2/r) a month, which is r where nothing was seen and m/t where much was. Kinds from the least
 * to the most specific: all, the country, the holder. A move that shows after a while happened at some time within it,
 * so half of that time counts as observed.
 *
 * Spent: between two checks what a delegation loses grows with the chance that its subnet has moved. With the rate h, and
 * v = lost ms × pages a day once it has moved, a check after τ days is worth, beyond the checks that are made anyway,
 *
 *   w(τ) = τ·v·(1 − e^(−hτ)) − v·∫₀^τ (1 − e^(−hs)) ds = v/h · (1 − (1 + hτ)·e^(−hτ))   ms × pages
 *
 * Checks are best spent at one price for all: each delegation when w reaches it (the index of P. Whittle, Restless bandits,
 * 1988, for this process). The price is the one at which all checks together fit into the budget. A subnet
 * that hardly ever moves is checked seldom, and so is one that moves so often that a check is worth little for long.
 */
import type { PlaceKey, Placement } from "../placement.ts";

export type RateKind = "all" | "country" | "holder";

/** What was seen of a kind of network. */
export interface MoveCounts {
  readonly moves: number;
  /** Observed: all its subnets together. */
  readonly months: number;
  /** All its moves together: what the crawler found before was slower than the one found then. */
  readonly lostMs: number;
}

/** What two rounds of one subnet, one after the other, tell. */
export interface CheckOutcome {
  readonly days: number;
  readonly moved: boolean;
  /** 0 where it did not move; null: nobody measured it. */
  readonly lostMs: number | null;
}

interface MoveRate {
  readonly perMonth: number;
  /** By which a move makes the crawler slower than the nearest. */
  readonly lossMs: number;
}

export const daysPerMonth = 30.4;

/** Before anything was seen: a tenth of all moves in a month, by as much as a crawler in a neighbouring country is slower. */
export const usualRate: MoveRate = { perMonth: 0.1, lossMs: 20 };

/** The less specific kind counts as so many moves. */
const priorMoves = 2;

const kindsInOrder = ["all", "country", "holder"] as const;

export type RateKeys = readonly (readonly [kind: RateKind, key: PlaceKey])[];

/** From the least to the most specific. */
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
        // A move that nobody measured loses what such moves are expected to lose.
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

/** Counts from the least to the most specific kind. */
export function rateFrom(counts: readonly MoveCounts[]): MoveRate {
  return counts.reduce<MoveRate>(
    (above, { moves, months, lostMs }) => ({
      perMonth: (moves + priorMoves) / (months + priorMoves / above.perMonth),
      lossMs: (lostMs + priorMoves * above.lossMs) / (moves + priorMoves),
    }),
    usualRate,
  );
}

/** What a delegation loses, and how soon. */
export interface Ageing {
  /** Moves a day. */
  readonly perDay: number;
  /** Lost ms × pages a day, once it has moved. */
  readonly lossPerDay: number;
}

/** Not oftener than once a day. */
const leastDays = 1;

/**
 * Not more seldom than once in so many mean intervals: what is never checked teaches nothing, and rounds are kept for as long
 * (retention.roundDays), so that each is there to be held against the one before.
 */
const mostMeans = 3;

/** A price for a check, and the days between two checks where all are checked alike. */
export interface CheckPlan {
  readonly price: number;
  readonly meanDays: number;
}

/** After how many days a delegation is to be checked again. */
export function checkAfterDays({ perDay, lossPerDay }: Ageing, { price, meanDays }: CheckPlan): number {
  const longest = Math.max(leastDays, mostMeans * meanDays);
  const share = (price * perDay) / lossPerDay;
  if (!(share < 1)) return longest;
  return Math.min(longest, Math.max(leastDays, ageWorth(share) / perDay));
}

/** The x at which 1 − (1 + x)·e^(−x), which grows from 0 to 1, is this: halved until it is near, then by Newton. */
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
 * Delegations by how soon they age and what they lose, coarsely: what the price of a check is found from. Steps of a fifth
 * and a half: a million delegations are some thousand cells.
 */
export class AgeingTally {
  /** Of each the sums of logarithms, so that its mean stands for it. */
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

  /** Checks each once in `meanDays` on average: the price at which it comes to that. Null: there is nothing to check. */
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
