/** The beginning of a live round: who is a candidate, by which method they measure, and how one is asked. */

import type { CrawlerId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { WaitingSubnet } from "./delegation.ts";
import type { PolicyParameters } from "./policies/round.ts";
import type { LiveRound, RoundPorts } from "./probe-round.ts";
import { originOf } from "./probe-target.ts";
import { RoundQuestions } from "./round-questions.ts";
import type { CoordinatorState } from "./state.ts";

export function openQuestions(
  { subnet, placement, ports }: LiveRound,
  parameters: PolicyParameters,
): RoundQuestions {
  const { settings, state, fleet } = ports;
  const candidates = candidatesFor(subnet, ports);
  const input = {
    placement,
    fleet: state.fleetOf(candidates),
    knowledge: state.knowledge,
    parameters,
    random: ports.random(),
  };
  const target = { ...originOf(subnet), address: subnet.address };
  const { method: wanted, tries, deadlineMs } = settings.probe;
  return new RoundQuestions({
    policy: settings.policy,
    input,
    learned: (method) => state.learnedRtts(method),
    method: possibleMethod(wanted, candidates, state),
    ask: async (crawlerId, method) => {
      const outcome = await fleet.probe(crawlerId, { ...target, method, tries, deadlineMs });
      noteDenial(outcome, { crawlerId, method, subnet, ports });
      return outcome;
    },
  });
}

function candidatesFor(subnet: WaitingSubnet, ports: RoundPorts): CrawlerId[] {
  const excluded = ports.excluded(subnet);
  const nowMs = ports.now().getTime();
  return ports.fleet
    .online()
    .filter((crawlerId) => !excluded.has(crawlerId) && !ports.denied?.denies(crawlerId, subnet, nowMs));
}

/** The settings' method, unless none of the candidates can use it. */
function possibleMethod(
  wanted: ProbeMethod,
  candidates: readonly CrawlerId[],
  state: CoordinatorState,
): ProbeMethod {
  const isUsable = (method: ProbeMethod) =>
    candidates.some((crawlerId) => {
      const methods = state.crawler(crawlerId)?.probeMethods ?? [];
      return methods.length === 0 || methods.includes(method);
    });
  if (candidates.length === 0 || isUsable(wanted)) return wanted;
  return (["connect", "head", "icmp"] as const).find(isUsable) ?? wanted;
}

/** A refusal of the target, not of the method, which the crawler said before that it does not use. */
function noteDenial(
  outcome: ProbeOutcome,
  context: {
    readonly crawlerId: CrawlerId;
    readonly method: ProbeMethod;
    readonly subnet: WaitingSubnet;
    readonly ports: RoundPorts;
  },
): void {
  const { crawlerId, method, subnet, ports } = context;
  if (outcome.type !== "not-allowed") return;
  const methods = ports.state.crawler(crawlerId)?.probeMethods ?? [];
  const needed: readonly ProbeMethod[] = method === "head" ? ["head", "connect"] : [method];
  if (methods.length > 0 && !needed.every((one) => methods.includes(one))) return;
  ports.denied?.noteRefusal(crawlerId, subnet.subnetId, ports.now().getTime());
}
