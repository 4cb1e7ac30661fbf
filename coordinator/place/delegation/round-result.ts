/** Turns a round's last step into what is stored and what memory keeps. */

import type { CrawlerId } from "#core/ids";
import type { AnycastRanges } from "./anycast.ts";
import type { FinishedRound } from "./delegation.ts";
import type { Placement } from "./placement.ts";
import type { RoundStep } from "./policies/round.ts";
import type { CoordinatorState } from "./state.ts";

export type Decided = Pick<
  FinishedRound,
  "crawlerId" | "measured" | "rttMs" | "runnerUpId" | "runnerUpRttMs" | "reason" | "anycast"
>;

export function decided(step: Exclude<RoundStep, { type: "probe" }>): Decided {
  const { reason } = step;
  if (step.type === "nobody") {
    return { crawlerId: null, measured: false, rttMs: null, runnerUpId: null, runnerUpRttMs: null, reason };
  }
  const { crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs } = step;
  return { crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs, reason };
}

/** When nobody answered, the owner keeps the subnet: a guess is no reason to move it. */
export function kept(present: CrawlerId, decision: Decided): Decided {
  if (decision.measured || decision.crawlerId === null || decision.crawlerId === present) return decision;
  return {
    ...decision,
    crawlerId: present,
    runnerUpId: decision.crawlerId,
    runnerUpRttMs: null,
    reason: { ...decision.reason, kept: true },
  };
}

export function remember(
  round: FinishedRound,
  known: {
    readonly state: CoordinatorState;
    readonly anycast?: AnycastRanges;
    readonly placement: Placement;
  },
): void {
  const { subnetId, crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs } = round;
  if (crawlerId === null) return;
  const teaches = measured && round.anycast !== true;
  known.state.setDelegation({ subnetId, crawlerId, measured: teaches, rttMs, runnerUpId, runnerUpRttMs });
  if (round.anycast) known.anycast?.mark(subnetId, known.placement.holderKey);
  else if (measured) known.anycast?.unmark(subnetId);
}
