/**
 * Shows the effect of another policy, λ, threshold or second witness by replaying the latest rounds with the present
 * and the new value.
 */

import type { AlarmClock } from "#core/clock";
import { howMany } from "#core/format";
import type { CrawlerId } from "#core/ids";
import { type CandidateFleet, candidateFleet } from "../../../place/delegation/fleet.ts";
import type { Placement } from "../../../place/delegation/placement.ts";
import { idOf, type PolicyVariant, SimulationRun } from "../../../place/delegation/simulation/simulation.ts";
import { PeerMatrix } from "../../../place/distances/peer-matrix.ts";
import { middleOf, rttBounds } from "../../../place/distances/predicted-rtts.ts";
import { isReplayed } from "../catalogue.ts";
import type { PastRound, PolicyStep, PreviewPorts } from "../change.ts";
import type { PolicyName, PolicySettings } from "../schema.ts";
import type { PolicyEffect } from "../settings-api.ts";

const mostRounds = 2000;

/** Time limit of a replay, which takes turns with the coordinator's other work. */
const playMs = 1000;

const turnMs = 20;
const title = "Delegation: the latest rounds played again";

async function replayed({ before, after }: PolicyStep, ports: PreviewPorts): Promise<PolicyEffect> {
  const { samples, crawlers, clock } = ports;
  const [sample, rtts] = [await samples(mostRounds), await crawlers.rtts()];
  if (sample.rounds.length === 0 || sample.crawlers.length === 0) return nothingYet;
  const peers = PeerMatrix.of(rtts);
  const crawlerRttMs = (a: CrawlerId, b: CrawlerId) => peers.rttMs(a, b);
  const playing = playRounds({ ...sample, crawlerRttMs }, [variantOf(before), variantOf(after)]);
  const [old, changed] = await played(playing, clock);
  const rounds = sample.rounds.slice(0, old!.rounds.length);
  const difference = differenceOf(old!, changed!);
  const paid = rounds.reduce((sum, { paidProbes }) => sum + paidProbes, 0);
  const agreeing = rounds.filter(({ crawlerId }, at) => old!.rounds[at]!.crawlerId === crawlerId).length;
  const perRound = (probes: number) => probes / rounds.length;
  const which =
    rounds.length < sample.rounds.length
      ? `of the latest ${sample.rounds.length.toLocaleString("en-GB")}, as many as could be played in ${playMs / 1000} s,`
      : "(the latest)";
  return {
    title,
    figures: [
      {
        name: "probesPerRound",
        words: "Probes per round",
        unit: "probes",
        before: perRound(difference.probesBefore),
        after: perRound(difference.probesAfter),
      },
      {
        name: "changedDelegations",
        words: "Of these subnets, those that would go to another crawler",
        unit: "subnets",
        before: 0,
        after: difference.changed,
      },
      {
        name: "extraRttMs",
        words: "Mean RTT to these subnets, against the present",
        unit: "ms",
        before: 0,
        after: difference.extraRttMs,
      },
    ],
    basis:
      `${howMany(rounds.length, "decided round")} ${which} and ${howMany(sample.crawlers.length, "crawler")}: ` +
      "each round played under both values in the same order. " +
      `${percent(1 - difference.predictedShare)} of the probes got the answer that ` +
      `was measured then; ${percent(difference.predictedShare)} went to crawlers that were not ` +
      "asked then, and got what the crawlers' distances to each other predict.",
    limits: [
      "Both begin with what the crawlers' own subnets teach, and learn from these rounds alone: " +
        `as they were run, they took ${perRound(paid).toFixed(1)} probes each.`,
      `Played under the present value, ${percent(agreeing / rounds.length)} of them end with the crawler that they ended with then.`,
      "Subnets that are delegated stay where they are until they are probed again.",
    ],
  };
}

/**
 * Previews a change of policies. For policies that decide rounds, replays the latest rounds in limited time, and
 * marks the result if it is incomplete. Other policies take effect at once, and no stored data could show more.
 */
export async function previewPolicies(step: PolicyStep, ports: PreviewPorts): Promise<PolicyEffect[]> {
  const untold = [...step.names].filter((name) => !isReplayed(name));
  const told = untold.length < step.names.size ? [await inTime(replayed(step, ports), ports)] : [];
  return [...told, ...(untold.length === 0 ? [] : [atOnce(untold)])];
}

/** How long a page waits for a preview. */
const patienceMs = 2000;

async function inTime(effect: Promise<PolicyEffect>, { clock, log }: PreviewPorts): Promise<PolicyEffect> {
  const untold = (basis: string): PolicyEffect => ({ title, figures: [], basis, limits: [] });
  let callOff = () => {};
  const late = new Promise<PolicyEffect>((resolve) => {
    const basis = `Not told: reading or computing it took longer than ${patienceMs / 1000} s.`;
    callOff = clock.wake(patienceMs, () => resolve(untold(basis)));
  });
  try {
    return await Promise.race([effect, late]);
  } catch (error) {
    log.error({ error }, "what a change of policies would come to could not be computed");
    return untold("Not told: the database did not answer as it should; the coordinator's log says why.");
  } finally {
    callOff();
    effect.catch(() => {});
  }
}

const atOnce = (names: readonly PolicyName[]): PolicyEffect => ({
  title: "Without figures",
  figures: [],
  basis: `Nothing that is stored tells what ${names.join(", ")} would come to.`,
  limits: ["It holds from the moment it is saved, for what begins after that."],
});

/** Replays as many rounds as time allows, but at least one. */
async function played(playing: Generator<Replay[], void>, clock: AlarmClock): Promise<Replay[]> {
  const startedMs = clock.nowMs();
  let turnStartedMs = startedMs;
  let replays: Replay[] = [];
  for (const soFar of playing) {
    replays = soFar;
    const nowMs = clock.nowMs();
    if (nowMs - startedMs > playMs) break;
    if (nowMs - turnStartedMs < turnMs) continue;
    await new Promise<void>((resolve) => clock.wake(0, resolve));
    turnStartedMs = clock.nowMs();
  }
  return replays;
}

function variantOf({ delegation, trust }: PolicySettings): PolicyVariant {
  const { policy, lambdaMs, thresholdMs } = delegation;
  return { policy, parameters: { lambdaMs, thresholdMs }, hasWitnesses: trust.witnesses };
}

const nothingYet: PolicyEffect = {
  title,
  figures: [],
  basis: "Not told: nothing has been stored yet that it could be computed from.",
  limits: ["Look again when the crawl has run for a while."],
};

const percent = (share: number) => `${Math.round(100 * share)} %`;

// Replays past probe rounds under other policies. Subnets come in the order in which they were decided, and each
// round learns from those before it. A crawler that a policy asks answers as it did then. If it was not asked then,
// its answer is predicted from the distances between crawlers (distances/predicted-rtts.ts), and such answers are
// counted, because a replay says no more about them than that.
//
// Every variant starts only from what the crawlers' own subnets teach. A replay therefore takes more probes than the
// same rounds took in a coordinator that had learned before. What counts is the difference between replays.

interface ReplayInput {
  readonly crawlers: readonly { readonly crawlerId: CrawlerId; readonly placement: Placement }[];
  /** Null if it was never measured. */
  readonly crawlerRttMs: (a: CrawlerId, b: CrawlerId) => number | null;
  readonly rounds: readonly PastRound[];
}

interface ReplayedRound {
  readonly crawlerId: CrawlerId;
  readonly probes: number;
  /** RTT of the crawler that got the subnet; null if it had no answer. */
  readonly rttMs: number | null;
  /** Whether the RTT was measured then, rather than predicted. */
  readonly isMeasured: boolean;
}

interface Replay {
  readonly rounds: readonly ReplayedRound[];
  /** How many probes were answered by a prediction. */
  readonly predictedProbes: number;
}

/** Returns one replay per variant, in the order of the variants. */
export function replayRounds(input: ReplayInput, variants: readonly PolicyVariant[]): Replay[] {
  const playing = playRounds(input, variants);
  let replays: Replay[] = variants.map(() => ({ rounds: [], predictedProbes: 0 }));
  for (const played of playing) replays = played;
  return replays;
}

/**
 * The same, round by round. Yields what all variants have replayed so far. In a large fleet a round takes a
 * millisecond or more, so the caller can pause or stop in between.
 */
function* playRounds(input: ReplayInput, variants: readonly PolicyVariant[]): Generator<Replay[], void> {
  const places = new Map(input.crawlers.map(({ crawlerId }, index) => [crawlerId, index]));
  const apartMs = distances(input);
  const fleet = fleetOf(apartMs);
  const players = variants.map((variant) => new Player(variant, input, fleet));
  for (const [target, round] of input.rounds.entries()) {
    const answers = answersOf(round, places, apartMs);
    for (const player of players) player.play(target, round.placement, answers);
    yield players;
  }
}

class Player implements Replay {
  readonly rounds: ReplayedRound[] = [];
  predictedProbes = 0;
  readonly #input: ReplayInput;
  readonly #run: SimulationRun;
  #answers: Answers | null = null;

  constructor(variant: PolicyVariant, input: ReplayInput, fleet: CandidateFleet) {
    this.#input = input;
    this.#run = new SimulationRun({
      variant,
      fleet,
      crawlerPlacements: input.crawlers.map(({ placement }) => placement),
      draw: () => 0,
      observe: ({ crawler, rttMs }) => {
        if (!this.#answers?.measured.has(crawler)) this.predictedProbes += 1;
        return Number.isFinite(rttMs) ? { rttMs } : { failed: "it had no answer then" };
      },
    });
  }

  play(target: number, placement: Placement, answers: Answers): void {
    this.#answers = answers;
    const { rttsMs, measured } = answers;
    const { chosen, probes, rttMs } = this.#run.delegate({ target, placement, rttsMs, bestRttMs: 0 });
    this.rounds.push({
      crawlerId: this.#input.crawlers[chosen]!.crawlerId,
      probes,
      rttMs: Number.isFinite(rttMs) ? rttMs : null,
      isMeasured: measured.has(chosen),
    });
  }
}

interface ReplayDifference {
  readonly rounds: number;
  readonly probesBefore: number;
  readonly probesAfter: number;
  /** How many subnets go to another crawler. */
  readonly changed: number;
  /** Mean over all rounds of the new crawler's RTT minus the old one's, in ms; null if unknown. */
  readonly extraRttMs: number | null;
  /** Which share of both replays' probes was answered by a prediction, 0 to 1. */
  readonly predictedShare: number;
}

export function differenceOf(before: Replay, after: Replay): ReplayDifference {
  const pairs = before.rounds.map((round, at) => [round, after.rounds[at]!] as const);
  const told = pairs.flatMap(([one, other]) =>
    one.rttMs === null || other.rttMs === null ? [] : [other.rttMs - one.rttMs],
  );
  const probesBefore = sum(before.rounds.map(({ probes }) => probes));
  const probesAfter = sum(after.rounds.map(({ probes }) => probes));
  return {
    rounds: pairs.length,
    probesBefore,
    probesAfter,
    changed: pairs.filter(([one, other]) => one.crawlerId !== other.crawlerId).length,
    extraRttMs: told.length === 0 ? null : sum(told) / told.length,
    predictedShare:
      (before.predictedProbes + after.predictedProbes) / Math.max(1, probesBefore + probesAfter),
  };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

function distances({ crawlers, crawlerRttMs }: ReplayInput): Float64Array[] {
  return crawlers.map((from, at) =>
    Float64Array.from(crawlers, (to, other) =>
      at === other ? 0 : (crawlerRttMs(from.crawlerId, to.crawlerId) ?? Number.NaN),
    ),
  );
}

function fleetOf(apartMs: readonly Float64Array[]) {
  const ids = apartMs.map((_, index) => idOf(index));
  const peers = apartMs.flatMap((row, from) =>
    Array.from(row, (rttMs, to) => ({ from: idOf(from), to: idOf(to), rttMs })),
  );
  return candidateFleet(ids, PeerMatrix.of(peers));
}

interface Answers {
  readonly rttsMs: Float64Array;
  readonly measured: ReadonlySet<number>;
}

function answersOf(
  { rttsMs: told }: PastRound,
  places: ReadonlyMap<CrawlerId, number>,
  apartMs: readonly Float64Array[],
): Answers {
  const asked = [...told].flatMap(([crawlerId, rttMs]) => {
    const place = places.get(crawlerId);
    return place === undefined ? [] : [{ place, rttMs }];
  });
  const answered = asked.flatMap(({ place, rttMs }) => (rttMs === null ? [] : [{ place, rttMs }]));
  const rttsMs = Float64Array.from(apartMs, (_, crawler) =>
    middleOf(rttBounds(answered.map(({ place, rttMs }) => [apartMs[place]![crawler], rttMs]))),
  );
  for (const { place, rttMs } of asked) rttsMs[place] = rttMs ?? Number.POSITIVE_INFINITY;
  return { rttsMs, measured: new Set(asked.map(({ place }) => place)) };
}
