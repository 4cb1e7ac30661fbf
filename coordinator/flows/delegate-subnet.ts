/**
 * One probe round for one subnet: asks the policy for the next step, has the crawler measure, and records the
 * decision with every probe, the reason and the runner-up. Candidates are the crawlers that are connected,
 * not draining and not full.
 */
import { nextStep, observe, type ProbeRound, startRound } from "#core/delegation/probe-round";
import type { Decision, Observation, PolicyName, PolicyParameters } from "#core/delegation/round";
import type { CrawlerId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import type { ProbeOutcome } from "#protocol/messages";
import type { CoordinatorState } from "./coordinator-state.ts";
import type { DelegationStore, FinishedRound, Fleet, RoundCause, WaitingSubnet } from "./ports.ts";
import { originOf, type ProbeSettings } from "./probe-target.ts";

export interface RoundSettings {
  readonly policy: PolicyName;
  readonly parameters: PolicyParameters;
  readonly probe: ProbeSettings;
  readonly allowSpecialPurpose: boolean;
}

export interface RoundPorts {
  readonly state: CoordinatorState;
  readonly fleet: Fleet;
  readonly delegations: Pick<DelegationStore, "saveRound">;
  /** Uniform in [0, 1): the policy `random` draws from it. */
  readonly random: () => number;
  readonly now: () => Date;
  /** Crawlers that must not take this subnet now (full, draining, the one that turned slow …). */
  readonly excluded: (subnet: WaitingSubnet) => ReadonlySet<CrawlerId>;
}

type AskedCrawler = FinishedRound["probes"][number];

/** Runs the round and stores it; null when the subnet is no longer in the tree or may not be probed. */
export async function delegateSubnet(
  subnet: WaitingSubnet,
  cause: RoundCause,
  ports: RoundPorts & { readonly settings: RoundSettings },
): Promise<FinishedRound | null> {
  const placement = ports.state.placementOf(subnet.subnetId);
  if (!placement || isForbidden(subnet.address, ports.settings)) return null;
  const startedAt = ports.now();
  const asked: AskedCrawler[] = [];
  let round = startRound(ports.settings.policy, {
    placement,
    fleet: ports.state.fleetOf(candidatesFor(subnet, ports)),
    knowledge: ports.state.knowledge,
    parameters: ports.settings.parameters,
    random: ports.random(),
  });
  for (;;) {
    const step = nextStep(round);
    if (step.type === "probe") {
      round = await askCrawler(round, step.crawlerId, { subnet, asked, ports });
      continue;
    }
    const finished: FinishedRound = {
      ...subnetOf(subnet, cause, ports.settings),
      startedAt,
      decidedAt: ports.now(),
      probes: asked,
      ...(step.type === "decided" ? decisionOf(step) : undecided(step.reason)),
    };
    await ports.delegations.saveRound(finished);
    remember(finished, ports.state);
    return finished;
  }
}

async function askCrawler(
  round: ProbeRound,
  crawlerId: CrawlerId,
  context: { subnet: WaitingSubnet; asked: AskedCrawler[]; ports: RoundPorts & { settings: RoundSettings } },
): Promise<ProbeRound> {
  const { subnet, asked, ports } = context;
  const target = { ...originOf(subnet), address: subnet.address, ...ports.settings.probe };
  const outcome = await ports.fleet.probe(crawlerId, target);
  asked.push({ crawlerId, outcome });
  return observe(round, crawlerId, observationOf(outcome, asked));
}

/**
 * A measurement by another method than the round's first one is no observation: the methods are not
 * compared with each other (a HEAD contains the server's own time, a connect does not).
 */
function observationOf(outcome: ProbeOutcome, asked: readonly AskedCrawler[]): Observation {
  if (outcome.type !== "measured") return { failed: `${outcome.type}: ${outcome.reason}`.slice(0, 200) };
  const first = asked.find((one) => one.outcome.type === "measured")?.outcome ?? outcome;
  if (first.method !== outcome.method) {
    return { failed: `measured by ${outcome.method}, which is not comparable with ${first.method}` };
  }
  return { rttMs: outcome.rttMs };
}

function candidatesFor(subnet: WaitingSubnet, ports: RoundPorts): CrawlerId[] {
  const excluded = ports.excluded(subnet);
  return ports.fleet.online().filter((crawlerId) => !excluded.has(crawlerId));
}

function isForbidden(address: string, settings: RoundSettings): boolean {
  if (settings.allowSpecialPurpose) return false;
  const parsed = parseAddress(address);
  return parsed === null || specialPurposeOf(parsed) !== null;
}

function subnetOf(subnet: WaitingSubnet, cause: RoundCause, settings: RoundSettings) {
  return {
    subnetId: subnet.subnetId,
    cause,
    policy: settings.policy,
    parameters: { ...settings.parameters },
    targetUrl: subnet.url,
    targetAddress: subnet.address,
  };
}

function decisionOf(decision: Decision) {
  const { crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs, reason } = decision;
  return { crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs, reason };
}

function undecided(reason: FinishedRound["reason"]) {
  return { crawlerId: null, measured: false, rttMs: null, runnerUpId: null, runnerUpRttMs: null, reason };
}

function remember(round: FinishedRound, state: CoordinatorState): void {
  if (round.crawlerId === null) return;
  const { subnetId, crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs } = round;
  state.setDelegation({ subnetId, crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs });
}
