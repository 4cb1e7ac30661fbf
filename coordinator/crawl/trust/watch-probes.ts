/**
 * Crawlers with impossible probe reports (trust/probe-plausibility) are excluded from rounds, the subnets they won
 * that way are probed again, and the operator is told. Second witnesses cover what one may win on few chosen subnets
 * (delegation/policies/second-witness).
 */

import type { RoundCause } from "#core/delegation-cause";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import type { Log } from "#core/log";
import type { PeerRtt } from "../../place/crawlers/crawler.ts";
import { placeOf } from "../../place/delegation/anycast.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import { type ProbeLie, type ProbingFleet, probeLies } from "./probe-plausibility.ts";
import type { TrustStore } from "./trust-store.ts";

interface WatchProbesPorts {
  readonly trust: Pick<TrustStore, "probedSubnets" | "doubtProbes">;
  readonly state: CoordinatorState;
  /** RTTs by direction: what the first measured to the second. */
  readonly peerRtts: () => Promise<readonly PeerRtt[]>;
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
  readonly incidents: IncidentNotes;
  readonly log: Log;
  readonly now: () => Date;
}

/** Routes change, so older reports are not compared with today's RTTs. */
const probesDays = 7;

/** Returns the newly distrusted crawlers. */
export async function doubtImpossibleProbes(ports: WatchProbesPorts): Promise<CrawlerId[]> {
  const { trust, now } = ports;
  const since = new Date(now().getTime() - probesDays * 86_400_000);
  const subnetsBy = await trust.probedSubnets(since);
  if (subnetsBy.size === 0) return [];
  const fleet = fleetOf(await ports.peerRtts(), ports.state);
  const lies = [...subnetsBy.values()].flatMap((subnets) => probeLies(subnets, fleet));
  const doubted: CrawlerId[] = [];
  for (const lie of lies) if (await doubt(lie, ports)) doubted.push(lie.crawlerId);
  return doubted;
}

function fleetOf(peerRtts: readonly PeerRtt[], state: CoordinatorState): ProbingFleet {
  const between = new Map(peerRtts.map(({ from, to, rttMs }) => [`${from} ${to}`, rttMs]));
  return {
    crawlers: state.crawlers.map(({ crawlerId }) => crawlerId),
    rttMs: (from, to) => between.get(`${from} ${to}`) ?? null,
    placeOf: (crawlerId) => placeOf(crawlerId, state),
  };
}

async function doubt(lie: ProbeLie, ports: WatchProbesPorts): Promise<boolean> {
  const { trust, state, request, incidents, log, now } = ports;
  const { crawlerId, subnets } = lie;
  const words = lieWords(lie);
  if (!(await trust.doubtProbes({ crawlerId, words, now: now() }))) return false;
  const crawler = state.crawler(crawlerId)?.name ?? String(crawlerId);
  log.warn({ crawlerId, crawler, words }, "a crawler's probe reports are no longer trusted");
  incidents.note({
    crawlerId,
    kind: "wrong-probe",
    words: `${words}. See nearcrawl fleet show ${crawler}`,
    remoteAddress: null,
    at: now(),
  });
  const won = subnets.filter((subnetId) => state.ownerOf(subnetId) === crawlerId);
  request(won, "refresh");
  return true;
}

const lieWords = ({ subnets, tested }: ProbeLie): string =>
  "it reports round-trip times that are too short to be possible, or it is not where its partner says, " +
  `on ${subnets.length} of the ${tested} subnets where others can tell`;
