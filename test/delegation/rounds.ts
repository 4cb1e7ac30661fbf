/** Runs rounds for tests: a world is a table of RTTs, a failing crawler is a text in it. */
import { candidateFleet } from "#coordinator/place/delegation/fleet";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import type { Placement } from "#coordinator/place/delegation/placement";
import { LearnedRtts } from "#coordinator/place/delegation/policies/learned-rtts";
import {
  nextStep,
  observe,
  type PolicyName,
  startRound,
} from "#coordinator/place/delegation/policies/policies";
import {
  type Decision,
  defaultParameters,
  type PolicyParameters,
  type RoundInput,
  type RoundStep,
} from "#coordinator/place/delegation/policies/round";
import { PeerMatrix } from "#coordinator/place/distances/peer-matrix";
import { asCrawlerId, type CrawlerId } from "#core/ids";

export const id = asCrawlerId;

export function placement(changes: Partial<Placement> = {}): Placement {
  return {
    subnetKey: "leaf",
    holderKey: null,
    ancestorKeys: [],
    country: null,
    slash8Key: "10/8",
    ...changes,
  };
}

/** RTTs between crawlers 1, 2, 3 …, one row each; symmetric. */
export function peerTable(matrix: readonly (readonly (number | null)[])[]): PeerMatrix {
  return PeerMatrix.of(
    matrix.flatMap((row, from) =>
      row.flatMap((rttMs, to) => (rttMs === null ? [] : [{ from: id(from + 1), to: id(to + 1), rttMs }])),
    ),
  );
}

/** So many crawlers, each so far from every other. */
export const everyPair = (crawlers: number, rttMs: number): number[][] =>
  Array.from({ length: crawlers }, (_, a) =>
    Array.from({ length: crawlers }, (_, b) => (a === b ? 0 : rttMs)),
  );

export interface RoundSetup {
  readonly policy: PolicyName;
  /** What crawler 1, 2, 3 … would measure, or why it fails. */
  readonly answers: readonly (number | string)[];
  readonly peers?: readonly (readonly (number | null)[])[];
  readonly candidates?: readonly number[];
  readonly placement?: Placement;
  readonly knowledge?: DelegationKnowledge;
  readonly learned?: LearnedRtts;
  readonly parameters?: Partial<PolicyParameters>;
  readonly random?: number;
  readonly listFrom?: number;
  readonly mayTake?: (crawlerId: CrawlerId) => boolean;
}

export function inputOf(setup: RoundSetup): RoundInput {
  const candidates = (setup.candidates ?? setup.answers.map((_, index) => index + 1)).map(id);
  return {
    placement: setup.placement ?? placement(),
    fleet: candidateFleet(candidates, peerTable(setup.peers ?? [])),
    knowledge: setup.knowledge ?? new DelegationKnowledge(),
    learned: setup.learned ?? new LearnedRtts(),
    parameters: { ...defaultParameters, ...setup.parameters },
    ...(setup.random === undefined ? {} : { random: setup.random }),
    ...(setup.listFrom === undefined ? {} : { listFrom: setup.listFrom }),
    ...(setup.mayTake === undefined ? {} : { mayTake: setup.mayTake }),
  };
}

export interface FinishedTestRound {
  readonly asked: readonly CrawlerId[];
  readonly how: readonly ("probe" | "get")[];
  readonly end: Exclude<RoundStep, { type: "probe" }>;
}

/** Asks until decided; more than a thousand steps are a failure of the policy. */
export function runRound(setup: RoundSetup): FinishedTestRound {
  let round = startRound(setup.policy, inputOf(setup));
  const asked: CrawlerId[] = [];
  const how: ("probe" | "get")[] = [];
  for (let steps = 0; steps < 1000; steps++) {
    const step = nextStep(round);
    if (step.type !== "probe") return { asked, how, end: step };
    asked.push(step.crawlerId);
    how.push(step.how);
    const answer = setup.answers[step.crawlerId - 1]!;
    round = observe(
      round,
      step.crawlerId,
      typeof answer === "number" ? { rttMs: answer } : { failed: answer },
    );
  }
  throw new Error("the round does not end");
}

export function decisionOf(setup: RoundSetup): Decision {
  const { end } = runRound(setup);
  if (end.type !== "decided") throw new Error("nobody was decided");
  return end;
}
