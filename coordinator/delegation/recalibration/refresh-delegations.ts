/**
 * What fetch times cannot show: that another crawler has become nearer than the one that fetches. So every
 * decision is probed again some day, the oldest first, at a bounded rate: a round asks the owner first (it is
 * the likeliest by what was learned) and as many others as the policy still finds worth a probe.
 *
 * A place in the order of age is kept, so that subnets that cannot be probed (nothing of them is left in the
 * frontier) do not hold up those behind them; at the end it begins again with the oldest.
 */
import type { SubnetId } from "#core/ids";
import type { AgedDelegation, DelegationStore } from "../delegation.ts";

export interface RefreshSettings {
  /** A decision is probed again when it is so old. */
  readonly days: number;
  /** Rounds in one turn, at most: at one turn a minute, 30 are 43,200 rounds a day. */
  readonly roundsPerTurn: number;
}

const dayMs = 86_400_000;

export class DelegationRefresh {
  readonly #delegations: Pick<DelegationStore, "decidedBefore">;
  readonly #settings: RefreshSettings;
  #behind: AgedDelegation | null = null;

  constructor(delegations: Pick<DelegationStore, "decidedBefore">, settings: RefreshSettings) {
    this.#delegations = delegations;
    this.#settings = settings;
  }

  /** The subnets to probe in this turn. */
  async next(now: Date): Promise<SubnetId[]> {
    const { days, roundsPerTurn } = this.#settings;
    const before = new Date(now.getTime() - days * dayMs);
    const aged = await this.#delegations.decidedBefore(before, this.#behind, roundsPerTurn);
    this.#behind = aged.length < roundsPerTurn ? null : aged.at(-1)!;
    return aged.map(({ subnetId }) => subnetId);
  }
}
