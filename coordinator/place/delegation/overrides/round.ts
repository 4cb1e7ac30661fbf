/**
 * A probe round for an address of a leaf or for a host by name. It uses the policies' rounds, but asks the crawlers to
 * compare with first and does not change what is known of the whole subnet.
 *
 * By name, every crawler measures the address it resolves. Each may reach another machine, so the triangle inequality
 * does not apply, and up to a dozen crawlers spread over the fleet are asked.
 */
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, RoundId, SubnetId } from "#core/ids";
import { saysNothing } from "#protocol/messages";
import { SecondQuestions } from "../present-owner.ts";
import {
  type AskingPorts,
  type Decided,
  decided,
  isDenied,
  isForbidden,
  RoundQuestions,
  type RoundSettings,
} from "../round-questions.ts";
import type { FinerDecision, FinerRound, ProbedTarget, SeenAnswer } from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";

export interface FinerRoundPorts extends AskingPorts {
  readonly finer: Pick<FinerDelegationStore, "saveRound">;
  readonly excluded: () => ReadonlySet<CrawlerId>;
  readonly settings: RoundSettings;
  readonly onDecided: (round: FinerRound) => void;
}

interface FinerErrand {
  readonly target: ProbedTarget;
  readonly withinSubnetId: SubnetId;
  readonly cause: RoundCause;
  /** Crawlers asked before those that the policy chooses. */
  readonly first?: readonly (CrawlerId | null)[];
  readonly byName?: boolean;
  /** If set, only these are asked. By default, the policy chooses. */
  readonly only?: readonly CrawlerId[];
}

export interface FinerOutcome {
  readonly roundId: RoundId;
  /** Null if no crawler measured anything. */
  readonly decision: Omit<FinerDecision, "subnetRttMs"> | null;
  /** Measurements by the method that is compared. */
  readonly rttsMs: ReadonlyMap<CrawlerId, number>;
  /** Crawlers that declined or did not report. They may be as near as before. */
  readonly unheard: ReadonlySet<CrawlerId>;
  /** The address that each reporting crawler resolved, if the round is by name. */
  readonly seen: readonly SeenAnswer[];
}

const mostByName = 12;

/** Runs and stores the round. Returns null if the address may not be probed, the subnet is gone or the coordinator stops. */
export async function finerRound(errand: FinerErrand, ports: FinerRoundPorts): Promise<FinerOutcome | null> {
  const { withinSubnetId, byName = false } = errand;
  const { state, settings } = ports;
  const startedAt = ports.now();
  const target = { ...errand.target, subnetId: withinSubnetId };
  const placement = state.placementOf(withinSubnetId);
  if (!placement || isForbidden(target.address, settings.allowSpecialPurpose)) return null;
  const online = ports.fleet.online().filter((crawlerId) => !isDenied(crawlerId, target, ports));
  const questions = new RoundQuestions(
    {
      policy: byName ? "exhaustive" : settings.policy,
      ...{ target, placement, settings, byName, method: settings.probe.method },
      candidates: candidatesOf(errand, online, ports),
      parameters: { ...settings.parameters, getFirst: false },
    },
    ports,
  );
  const first = [...new Set(errand.first)].filter((one) => one !== null && online.includes(one));
  const ending = await endingOf(first as CrawlerId[], questions, ports);
  if (ending === null) return null;
  const round: FinerRound = { withinSubnetId, ...questions.finished(errand.cause, startedAt, ending) };
  const roundId = await ports.finer.saveRound(round);
  ports.onDecided(round);
  const { crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs } = round;
  const rttsMs = new Map(questions.answers.map((answer) => [answer.crawlerId, answer.rttMs]));
  const isKnown = crawlerId !== null && measured && rttsMs.size > 0;
  const unheard = questions.probes.filter((one) => saysNothing(one.outcome) && !rttsMs.has(one.crawlerId));
  const seen = questions.probes.flatMap(({ crawlerId: by, outcome: { address } }) =>
    address === undefined ? [] : [[by, { crawlerId: by, addresses: [address] }] as const],
  );
  return {
    roundId,
    decision: isKnown ? { roundId, crawlerId, rttMs, runnerUpId, runnerUpRttMs } : null,
    rttsMs,
    unheard: new Set(unheard.map((one) => one.crawlerId)),
    seen: [...new Map(seen).values()],
  };
}

/** Asks until the round ends. Returns null if the coordinator stops before. */
async function endingOf(
  first: CrawlerId[],
  questions: RoundQuestions,
  { settings, isStopping }: FinerRoundPorts,
): Promise<Decided | null> {
  const second = new SecondQuestions(settings.parameters);
  for (;;) {
    if (isStopping?.()) return null;
    const heldAgainst = first.shift();
    const step = questions.step();
    if (heldAgainst !== undefined) await questions.probe(heldAgainst);
    else if (step.type === "probe") await questions.probe(step.crawlerId);
    else if (!(await second.ask(questions, step))) return decided(step);
  }
}

function candidatesOf(
  { first = [], only, byName }: FinerErrand,
  online: readonly CrawlerId[],
  { excluded, random }: FinerRoundPorts,
): CrawlerId[] {
  const full = excluded();
  const able = online.filter((crawlerId) => !full.has(crawlerId) && (only?.includes(crawlerId) ?? true));
  if (!byName || able.length <= mostByName) return able;
  const preferred = able.filter((crawlerId) => first.includes(crawlerId)).slice(0, mostByName);
  const others = able.filter((crawlerId) => !preferred.includes(crawlerId));
  return [...preferred, ...spreadOver(others, mostByName - preferred.length, random())];
}

/** Evenly spaced crawlers from a random start. */
function spreadOver(crawlers: readonly CrawlerId[], most: number, random: number): CrawlerId[] {
  const offset = Math.floor(random * crawlers.length);
  return Array.from({ length: most }, (_, index) => {
    const place = offset + Math.floor((index * crawlers.length) / most);
    return crawlers[place % crawlers.length]!;
  });
}
