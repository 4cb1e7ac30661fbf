/** Runs rounds for tests: a world is a table of RTTs, and a failing crawler is a text in it. */
import { candidateFleet } from "#coordinator/place/delegation/fleet";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import type { Placement } from "#coordinator/place/delegation/placement";
import { LearnedRtts } from "#coordinator/place/delegation/policies/learned-rtts";
import {
  learnFromRound,
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

export const placement = (changes: Partial<Placement> = {}): Placement => ({
  ...{ subnetKey: "leaf", holderKey: null, ancestorKeys: [], country: null, slash8Key: "10/8" },
  ...changes,
});

type Matrix = readonly (readonly (number | null)[])[];

/** RTTs between crawlers 1, 2, 3 …, one row each; symmetric. */
export const peerTable = (matrix: Matrix): PeerMatrix =>
  PeerMatrix.of(
    matrix.flatMap((row, from) =>
      row.flatMap((rttMs, to) => (rttMs === null ? [] : [{ from: id(from + 1), to: id(to + 1), rttMs }])),
    ),
  );

/** Crawlers at equal distances from each other. */
export const everyPair = (crawlers: number, rttMs: number): number[][] =>
  Array.from({ length: crawlers }, (_, a) =>
    Array.from({ length: crawlers }, (_, b) => (a === b ? 0 : rttMs)),
  );

/** Crawlers on a line, 100 ms apart: 1 ── 2 ── 3 ── 4 */
export const line = [0, 100, 200, 300].map((a) => [0, 100, 200, 300].map((b) => Math.abs(a - b)));

export interface RoundSetup extends Partial<Omit<RoundInput, "fleet" | "parameters">> {
  readonly policy: PolicyName;
  /** What crawler 1, 2, 3 … would measure, or why it fails. */
  readonly answers: readonly (number | string)[];
  readonly peers?: Matrix;
  readonly candidates?: readonly number[];
  readonly parameters?: Partial<PolicyParameters>;
}

export function inputOf({
  policy: _,
  answers,
  peers,
  candidates,
  parameters,
  ...given
}: RoundSetup): RoundInput {
  const crawlers = (candidates ?? answers.map((_, index) => index + 1)).map(id);
  return {
    placement: placement(),
    fleet: candidateFleet(crawlers, peerTable(peers ?? [])),
    knowledge: new DelegationKnowledge(),
    learned: new LearnedRtts(),
    ...given,
    parameters: { ...defaultParameters, ...parameters },
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
    if (step.type !== "probe") {
      if (setup.learned) learnFromRound(round);
      return { asked, how, end: step };
    }
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
