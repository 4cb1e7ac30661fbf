/**
 * A probe round for an address of a leaf or for a host by name. It uses the policies' rounds, but asks the crawlers to
 * compare with first and does not change what is known of the whole subnet.
 *
 * By name, every crawler measures the address it resolves. Each may reach another machine, so the triangle inequality
 * does not apply, and up to a dozen crawlers spread over the fleet are asked.
 */

import type { RoundCause } from "#core/delegation-cause";
import type { CrawlerId, RoundId, SubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { refusedBlockOf } from "#core/ip/special-purpose";
import { type ProbeOutcome, saysNothing } from "#protocol/messages";
import type { Fleet } from "../../crawlers/crawler.ts";
import type { DeniedTargets } from "../denied-targets.ts";
import { SecondQuestions } from "../present-owner.ts";
import type { RoundSettings } from "../probe-round.ts";
import { originOf, RoundQuestions } from "../round-questions.ts";
import { type Decided, decided } from "../round-result.ts";
import type { CoordinatorState } from "../state.ts";
import type { FinerDecision, FinerRound, ProbedTarget, SeenAnswer } from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";

export interface FinerRoundPorts {
  readonly state: CoordinatorState;
  readonly fleet: Fleet;
  readonly finer: Pick<FinerDelegationStore, "saveRound">;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly now: () => Date;
  /** Crawlers that get nothing new now. */
  readonly excluded: () => ReadonlySet<CrawlerId>;
  readonly denied?: DeniedTargets;
  readonly settings: RoundSettings;
  readonly onDecided: (round: FinerRound) => void;
  /** When true, the round is abandoned and nothing more is stored. */
  readonly isStopping?: () => boolean;
}

interface FinerErrand {
  readonly target: ProbedTarget;
  readonly withinSubnetId: SubnetId;
  readonly cause: RoundCause;
  /** Crawlers asked before the policy's. */
  readonly first: readonly CrawlerId[];
  readonly byName: boolean;
  /** Asks only these; by default, the policy chooses. */
  readonly only?: readonly CrawlerId[];
}

export interface FinerOutcome {
  readonly roundId: RoundId;
  /** Null when nobody measured anything. */
  readonly decision: Omit<FinerDecision, "subnetRttMs"> | null;
  /** Measurements by the compared method. */
  readonly rttsMs: ReadonlyMap<CrawlerId, number>;
  /** Crawlers that declined or did not report; they may be as near as before. */
  readonly unheard: ReadonlySet<CrawlerId>;
  /** By name: the address each reporting crawler resolved. */
  readonly seen: readonly SeenAnswer[];
}

/** Maximum crawlers that measure a host by name. */
const mostByName = 12;

/** Runs and stores the round; returns null when the address may not be probed, the subnet is gone or we stop. */
export async function finerRound(errand: FinerErrand, ports: FinerRoundPorts): Promise<FinerOutcome | null> {
  const startedAt = ports.now();
  const questions = openQuestions(errand, ports);
  if (questions === null) return null;
  const ending = await endingOf(errand, questions, ports);
  if (ending === null) return null;
  const round: FinerRound = {
    withinSubnetId: errand.withinSubnetId,
    cause: errand.cause,
    policy: policyOf(errand, ports),
    parameters: { ...ports.settings.parameters },
    targetUrl: errand.target.url,
    targetAddress: errand.target.address,
    startedAt,
    decidedAt: ports.now(),
    probes: questions.probes,
    method: questions.method,
    ...ending,
  };
  const roundId = await ports.finer.saveRound(round);
  ports.onDecided(round);
  const { crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs } = round;
  const rttsMs = new Map(questions.answers.map((answer) => [answer.crawlerId, answer.rttMs]));
  const isKnown = crawlerId !== null && measured && rttsMs.size > 0;
  return {
    roundId,
    decision: isKnown ? { roundId, crawlerId, rttMs, runnerUpId, runnerUpRttMs } : null,
    rttsMs,
    unheard: new Set(
      questions.probes
        .filter(({ crawlerId, outcome }) => saysNothing(outcome) && !rttsMs.has(crawlerId))
        .map(({ crawlerId }) => crawlerId),
    ),
    seen: seenIn(questions),
  };
}

/** Asks until the round ends; returns null when we stop before. */
async function endingOf(
  errand: FinerErrand,
  questions: RoundQuestions,
  ports: FinerRoundPorts,
): Promise<Decided | null> {
  const connected = new Set(ports.fleet.online());
  const first = [...new Set(errand.first)].filter(
    (crawlerId) => connected.has(crawlerId) && !isDenied(crawlerId, errand, ports),
  );
  const second = new SecondQuestions(ports.settings.parameters);
  for (;;) {
    if (ports.isStopping?.()) return null;
    const heldAgainst = first.shift();
    const step = questions.step();
    if (heldAgainst !== undefined) await questions.probe(heldAgainst);
    else if (step.type === "probe") await questions.probe(step.crawlerId);
    else if (!(await second.ask(questions, step))) return decided(step);
  }
}

function openQuestions(errand: FinerErrand, ports: FinerRoundPorts): RoundQuestions | null {
  const { state, settings } = ports;
  const placement = state.placementOf(errand.withinSubnetId);
  if (!placement || isForbidden(errand, ports)) return null;
  return new RoundQuestions({
    policy: policyOf(errand, ports),
    input: {
      placement,
      fleet: state.fleetOf(candidatesFor(errand, ports)),
      knowledge: state.knowledge,
      parameters: { ...settings.parameters, getFirst: false },
      random: ports.random(),
      hasWitnesses: settings.hasWitnesses === true && !errand.byName,
    },
    learned: (method) => state.learnedRtts(method),
    method: settings.probe.method,
    ask: async (crawlerId, method) => {
      const { target, withinSubnetId, byName } = errand;
      const { tries, deadlineMs } = settings.probe;
      const origin = originOf({ ...target, subnetId: withinSubnetId });
      const asked = { ...origin, address: target.address, method, tries, deadlineMs };
      if (!byName) return await ports.fleet.probe(crawlerId, asked);
      return byNameOnly(await ports.fleet.probe(crawlerId, { ...asked, byName }));
    },
  });
}

function policyOf(errand: FinerErrand, { settings }: FinerRoundPorts) {
  return errand.byName ? "exhaustive" : settings.policy;
}

/** A crawler without support for names measured the coordinator's address, which does not count. */
function byNameOnly(outcome: ProbeOutcome): ProbeOutcome {
  if (outcome.type !== "measured" || outcome.address !== undefined) return outcome;
  return { type: "failed", method: outcome.method, reason: "its software does not measure by name" };
}

function seenIn(questions: RoundQuestions): SeenAnswer[] {
  const seen = questions.probes.flatMap(({ crawlerId, outcome }) =>
    outcome.address === undefined ? [] : [[crawlerId, [outcome.address]] as const],
  );
  return [...new Map(seen)].map(([crawlerId, addresses]) => ({ crawlerId, addresses }));
}

function candidatesFor(errand: FinerErrand, ports: FinerRoundPorts): CrawlerId[] {
  const excluded = ports.excluded();
  const able = ports.fleet
    .online()
    .filter((crawlerId) => !excluded.has(crawlerId) && !isDenied(crawlerId, errand, ports))
    .filter((crawlerId) => errand.only?.includes(crawlerId) ?? true);
  if (!errand.byName || able.length <= mostByName) return able;
  const first = able.filter((crawlerId) => errand.first.includes(crawlerId)).slice(0, mostByName);
  const others = able.filter((crawlerId) => !first.includes(crawlerId));
  return [...first, ...spreadOver(others, mostByName - first.length, ports.random())];
}

function isDenied(crawlerId: CrawlerId, { target, withinSubnetId }: FinerErrand, ports: FinerRoundPorts) {
  const denied = { ...target, subnetId: withinSubnetId };
  return ports.denied?.denies(crawlerId, denied, ports.now().getTime()) ?? false;
}

/** Evenly spaced crawlers from a random start. */
function spreadOver(crawlers: readonly CrawlerId[], most: number, random: number): CrawlerId[] {
  const offset = Math.floor(random * crawlers.length);
  return Array.from({ length: most }, (_, index) => {
    const place = offset + Math.floor((index * crawlers.length) / most);
    return crawlers[place % crawlers.length]!;
  });
}

function isForbidden({ target }: FinerErrand, { settings }: FinerRoundPorts): boolean {
  const address = parseAddress(target.address);
  return address === null || refusedBlockOf(address, settings.allowSpecialPurpose) !== null;
}
