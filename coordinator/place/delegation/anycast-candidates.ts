/**
 * Finds delegated ranges that may be anycast although no round has shown it: a round stops at the first near answer,
 * and a lone crawler gets its subnets without one.
 *
 * - A cloud or CDN lists the range, and that place of the list has not been checked.
 * - The owner and the runner-up both measured it near, although they are far apart.
 *
 * Such a range gets a round that asks a crawler that could contradict (anycast-check.ts). Delegations are examined in
 * turn; none is a candidate again within a day.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { type AnycastRanges, answerOf, contradictions, leastSum, someOf } from "./anycast.ts";
import { fastMs } from "./anycast-check.ts";
import type { Delegation } from "./delegation.ts";
import type { CoordinatorState } from "./state.ts";

/** Delegations examined per turn: with one turn a minute, a million take eight hours. */
const lookedAt = 2000;

/** Maximum rounds per turn. */
const roundsPerTurn = 10;

interface CandidatePorts {
  readonly state: CoordinatorState;
  readonly ranges: AnycastRanges;
  readonly online: () => readonly CrawlerId[];
  readonly nowMs: () => number;
}

export class AnycastCandidates {
  readonly #ports: CandidatePorts;
  #at = 0;

  constructor(ports: CandidatePorts) {
    this.#ports = ports;
  }

  /** The subnets that need a round in this turn. */
  next(): SubnetId[] {
    const { state, ranges, online, nowMs } = this.#ports;
    const crawlers = someOf(online());
    const found: SubnetId[] = [];
    /** One range stands for its place of the list. */
    const places = new Set<string>();
    for (let looked = 0; looked < Math.min(lookedAt, state.delegationTable.size); looked += 1) {
      if (found.length === roundsPerTurn) return found;
      this.#at = (this.#at + 1) % state.delegationTable.size;
      const delegation = state.delegationTable.at(this.#at);
      if (delegation === null || ranges.has(delegation.subnetId) || !crawlers.includes(delegation.crawlerId))
        continue;
      const { listed } = state.placementOf(delegation.subnetId) ?? {};
      const isUnchecked =
        listed !== undefined && !ranges.isListedClear(listed, nowMs()) && !places.has(listed.place);
      const witness =
        this.#contradicting(delegation) ?? (isUnchecked ? this.#farFrom(delegation, crawlers) : null);
      if (witness === null || !ranges.suspect(delegation.subnetId, witness, nowMs())) continue;
      if (listed !== undefined) places.add(listed.place);
      found.push(delegation.subnetId);
    }
    return found;
  }

  /** The runner-up, if one machine cannot have given both answers. */
  #contradicting({ crawlerId, rttMs, measured, runnerUpId, runnerUpRttMs }: Delegation): CrawlerId | null {
    if (!measured || rttMs === null || runnerUpId === null || runnerUpRttMs === null) return null;
    const { state } = this.#ports;
    const answers = [answerOf(crawlerId, rttMs, state), answerOf(runnerUpId, runnerUpRttMs, state)];
    const fleet = { candidates: [crawlerId, runnerUpId], peerRtts: state.peerRtts };
    return contradictions(answers, fleet).length > 0 ? runnerUpId : null;
  }

  /** The farthest crawler whose fast answer would contradict the owner's. */
  #farFrom({ crawlerId, rttMs }: Delegation, crawlers: readonly CrawlerId[]): CrawlerId | null {
    const { state } = this.#ports;
    if (rttMs !== null && rttMs > fastMs) return null;
    const own = answerOf(crawlerId, 0, state);
    const fleet = { candidates: crawlers, peerRtts: state.peerRtts };
    let farthest: CrawlerId | null = null;
    let mostMs = fastMs + (rttMs ?? 0);
    for (const other of crawlers) {
      const apartMs = leastSum(own, answerOf(other, 0, state), fleet)?.ms ?? 0;
      if (other === crawlerId || apartMs < mostMs) continue;
      mostMs = apartMs;
      farthest = other;
    }
    return farthest;
  }
}
