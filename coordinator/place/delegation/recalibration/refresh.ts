/**
 * Finds what fetch times cannot show: that another crawler has become nearer. Every decision is therefore probed
 * again: a round asks the owner first (the likeliest by what was learned) and others as far as worth it. ageing.ts
 * decides when, within the operator's budget of one check per delegation and number of days. Until the first pass is
 * complete, each is checked after that number of days.
 *
 * Fetch-time alarms work beside this. Their rounds count as checks: the delegation's age restarts, and the result
 * counts among the moves.
 *
 * The position in age order is kept, so that subnets that cannot be probed (gone from the frontier) do not hold up
 * others; at the end it restarts with the oldest.
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
  /** The budget: one check per decision in this many days. */
  readonly days: number;
  /** Maximum rounds per turn: with a turn a minute, 30 are 43,200 a day. */
  readonly roundsPerTurn: number;
}

const dayMs = 86_400_000;

/** Decisions examined per turn: a million take eight hours. */
const lookedAt = 2000;

/** How often rates are learned again. */
const learnMs = 6 * 3_600_000;

/** Latest rounds used for learning. */
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

  /** Uses the last pass's tally and the operator's current budget. */
  #planNow(): CheckPlan | null {
    const { days } = this.#settings;
    if (this.#plan?.meanDays !== days) this.#plan = this.#lastTally?.planFor(days) ?? null;
    return this.#plan;
  }

  #ageingOf({ subnetId, pagesPerDay }: AgedDelegation): Ageing {
    const placement = this.#ports.state.placementOf(subnetId);
    const { perMonth, lossMs } = placement ? this.#rates.rateOf(rateKeysOf(placement)) : usualRate;
    // A subnet without fetches this week still has future ones.
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
