/**
 * Every probe tells something of anycast, whatever it was made for: a host looked at from afar, a move that is
 * measured first, an old decision seen again. Its time is held against that of the crawler that has the subnet;
 * where one machine cannot have given both, the subnet gets a round, which asks the witness again. Costs no
 * probe by itself.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeOutcome } from "#protocol/messages";
import type { Fleet } from "../crawlers/crawler.ts";
import { anycastEvidence, type PlacedAnswer } from "./anycast.ts";
import type { AnycastRanges } from "./anycast-ranges.ts";
import type { CoordinatorState } from "./state.ts";

export interface HintPorts {
  readonly state: CoordinatorState;
  readonly ranges: AnycastRanges;
  readonly nowMs: () => number;
  /** Asks for a round of the subnet; nothing happens while one is under way. */
  readonly request: (subnetId: SubnetId) => void;
}

/** The fleet, with its answers looked at on their way. */
export function watchedFleet(fleet: Fleet, ports: HintPorts): Fleet {
  return {
    online: () => fleet.online(),
    probe: async (crawlerId, target) => {
      const outcome = await fleet.probe(crawlerId, target);
      noteAnswer(crawlerId, { address: target.address, ...addressIn(outcome) }.address, outcome, ports);
      return outcome;
    },
  };
}

const addressIn = ({ address }: ProbeOutcome) => (address === undefined ? {} : { address });

/** Only connects are compared: what crawlers know of each other, and most rounds, are connects. */
function noteAnswer(crawlerId: CrawlerId, address: string, outcome: ProbeOutcome, ports: HintPorts): void {
  const { state, ranges, request } = ports;
  if (outcome.type !== "measured" || outcome.method !== "connect") return;
  const subnetId = state.subnetOf(address);
  const known = subnetId === null ? null : state.delegationOf(subnetId);
  if (subnetId === null || !known?.measured || known.rttMs === null) return;
  if (known.crawlerId === crawlerId || ranges.has(subnetId)) return;
  const answers = [answerOf(known.crawlerId, known.rttMs, state), answerOf(crawlerId, outcome.rttMs, state)];
  const candidates = state.crawlers.map((crawler) => crawler.crawlerId);
  if (anycastEvidence(answers, { candidates, peerRtts: state.peerRtts }) === null) return;
  if (ranges.suspect(subnetId, crawlerId, ports.nowMs())) request(subnetId);
}

function answerOf(crawlerId: CrawlerId, rttMs: number, state: CoordinatorState): PlacedAnswer {
  const { latitude = null, longitude = null } = state.crawler(crawlerId) ?? {};
  const place = latitude === null || longitude === null ? null : { latitude, longitude };
  return { crawlerId, rttMs, place };
}
