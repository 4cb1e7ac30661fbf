/**
 * Crawlers whose probe reports cannot be true (trust/probe-plausibility) are asked no more: they are no candidates in
 * new rounds, the subnets that they won by such a report are probed again by others, and an operator hears of it. One that
 * won few subnets so is not accused, and loses these: they are probed again without it.
 */

import type { RoundCause } from "#core/delegation-cause";
import { howMany } from "#core/format";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import type { Log } from "#core/log";
import type { PeerRtt } from "../crawlers/crawler.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { TrustStore } from "./comparison.ts";
import { impossibleReports, type ProbeLie, type ProbingFleet, probeLies } from "./probe-plausibility.ts";

interface WatchProbesPorts {
  readonly trust: Pick<TrustStore, "probedSubnets" | "doubtProbes">;
  readonly state: CoordinatorState;
  /** Between crawlers, by direction: what the first measured to the second. */
  readonly peerRtts: () => Promise<readonly PeerRtt[]>;
  readonly denied: () => Pick<DeniedTargets, "noteRefusal">;
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
  readonly incidents: IncidentNotes;
  readonly log: Log;
  readonly now: () => Date;
}

/** Routes change: reports so old are not held against today's distances. */
const probesDays = 7;
const dayMs = 86_400_000;

/** Gives the crawlers that are doubted from now on. */
export async function doubtImpossibleProbes(ports: WatchProbesPorts): Promise<CrawlerId[]> {
  const { trust, now } = ports;
  const since = new Date(now().getTime() - probesDays * 86_400_000);
  const subnetsBy = await trust.probedSubnets(since);
  if (subnetsBy.size === 0) return [];
  const fleet = fleetOf(await ports.peerRtts(), ports.state);
  const lies = [...subnetsBy.values()].flatMap((subnets) => probeLies(subnets, fleet));
  const doubted: CrawlerId[] = [];
  for (const lie of lies) if (await doubt(lie, ports)) doubted.push(lie.crawlerId);
  const accused = new Set(lies.map(({ crawlerId }) => crawlerId));
  const impossible = [...subnetsBy.values()].flatMap((subnets) => impossibleReports(subnets, fleet));
  takeBackWins(
    impossible.filter(({ crawlerId }) => !accused.has(crawlerId)),
    ports,
  );
  return doubted;
}

/** In one pass; what is left has its turn in the next. */
const mostTakenBack = 200;

function takeBackWins(
  impossible: readonly { readonly crawlerId: CrawlerId; readonly subnetId: SubnetId }[],
  { state, denied, request, incidents, now }: WatchProbesPorts,
): void {
  const at = now();
  const won = impossible
    .filter(({ crawlerId, subnetId }) => state.ownerOf(subnetId) === crawlerId)
    .slice(0, mostTakenBack);
  for (const { crawlerId, subnetId } of won)
    denied().noteRefusal(crawlerId, subnetId, at.getTime(), probesDays * dayMs);
  for (const crawlerId of new Set(won.map((one) => one.crawlerId))) {
    const subnetIds = won.filter((one) => one.crawlerId === crawlerId).map(({ subnetId }) => subnetId);
    request(subnetIds, "refresh");
    const words = `it won ${howMany(subnetIds.length, "subnet")} with reports that two others found impossible; they are probed again without it`;
    incidents.note({ crawlerId, kind: "wrong-probe", words, remoteAddress: null, at });
  }
}

function fleetOf(peerRtts: readonly PeerRtt[], state: CoordinatorState): ProbingFleet {
  const between = new Map(peerRtts.map(({ from, to, rttMs }) => [`${from} ${to}`, rttMs]));
  return {
    crawlers: state.crawlers.map(({ crawlerId }) => crawlerId),
    rttMs: (from, to) => between.get(`${from} ${to}`) ?? null,
    placeOf: (crawlerId) => {
      const { latitude = null, longitude = null } = state.crawler(crawlerId) ?? {};
      return latitude === null || longitude === null ? null : { latitude, longitude };
    },
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
  `it reports round-trip times that are too short to be possible, or it is not where its partner says, on ${subnets.length} of the ${tested} subnets where others can tell`;
