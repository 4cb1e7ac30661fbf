/**
 * What fetch times cannot show: that another crawler has become nearer than the one that fetches. So every decision is
 * probed again some day: a round asks the owner first (it is the likeliest by what was learned) and as many others as the
 * policy still finds worth a probe. How soon says ageing.ts; all together they are as many rounds as would check each
 * decision once in the operator's number of days. Until the first pass over all has seen what there is, each is checked
 * after that number of days.
 *
 * Fetch-time alarms go on beside this. A round that one of them led to is a check as well: the delegation's age begins
 * anew with it, and what it found counts among the moves.
 *
 * The place in the order of age is kept, so that subnets that cannot be probed (nothing of them is left in the
 * frontier) do not hold up those behind them; at the end it begins again with the oldest.
 */
import type { SubnetId } from "#core/ids";
import type { AgedDelegation } from "../delegation.ts";
import type { Placement } from "../placement.ts";
import type { DelegationStore } from "../store.ts";
import {
  type Ageing,
  AgeingTally,
  type CheckPlan,
  checkAfterDays,
  daysPerMonth,
  MoveRates,
  rateKeysOf,
  usualRate,
} from "./ageing.ts";

interface RefreshPorts {
  readonly delegations: Pick<DelegationStore, "decidedBefore" | "checkOutcomes" | "saveMoveRates">;
  readonly state: { placementOf(subnetId: SubnetId): Placement | null };
}

interface RefreshSettings {
  /** The budget: as many rounds as check each decision once in so many days. */
  readonly days: number;
  /** Rounds in one turn, at most: at one turn a minute, 30 are 43,200 rounds a day. */
  readonly roundsPerTurn: number;
}

const dayMs = 86_400_000;

/** Decisions that are looked at in a turn: a million take eight hours. */
const lookedAt = 2000;

/** What was learned is learned anew so often. */
const learnMs = 6 * 3_600_000;

/** The latest, that it is learned from. */
const roundsLearned = 200_000;

export class DelegationRefresh {
  readonly #ports: RefreshPorts;
  readonly #settings: RefreshSettings;
  #behind: AgedDelegation | null = null;
  #rates = new MoveRates();
  #learnedAtMs = Number.NEGATIVE_INFINITY;
  /** Of the present pass, and of the last one that came to its end. */
  #tally = new AgeingTally();
  #lastTally: AgeingTally | null = null;
  #plan: CheckPlan | null = null;

  constructor(ports: RefreshPorts, settings: RefreshSettings) {
    this.#ports = ports;
    this.#settings = settings;
  }

  /** The subnets to probe in this turn. */
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

  /** By what there was in the last pass; the operator may have changed the budget since. */
  #planNow(): CheckPlan | null {
    const { days } = this.#settings;
    if (this.#plan?.meanDays !== days) this.#plan = this.#lastTally?.planFor(days) ?? null;
    return this.#plan;
  }

  #ageingOf({ subnetId, pagesPerDay }: AgedDelegation): Ageing {
    const placement = this.#ports.state.placementOf(subnetId);
    const { perMonth, lossMs } = placement ? this.#rates.rateOf(rateKeysOf(placement)) : usualRate;
    // Where nothing was fetched this week there is still something to come.
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
