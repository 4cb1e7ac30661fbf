/**
 * GeoDNS: a host that resolves differently by place is delegated by itself, to the crawler that is nearest to
 * what it sees. Two things raise the suspicion: a fetch went where the coordinator would not have gone, which
 * costs nothing; and of the hosts that are fetched where the coordinator sees them, a few a pass are looked at
 * by the crawler that is farthest from there, since a subnet's crawler is near to what the coordinator sees
 * and most often sees the same. Then the coordinator and crawlers are asked for the name several times, with
 * more than its TTL in between, until `placeVerdict` is sure. The last asking has measured who is nearest.
 */

import type { CrawlerId } from "#core/ids";
import type { NameResolver } from "../../frontier/ports.ts";
import type { CoordinatorState } from "../state.ts";
import { type AnswerArea, placeVerdict } from "./answers-by-place.ts";
import { addAnswer, type NameWatch, type SuspectedHost } from "./name-watch.ts";
import { type FinerDelegationStore, type HostPlace, reviewTimes, type SeenAnswer } from "./override.ts";
import { type FinerOutcome, type FinerRoundPorts, finerRound } from "./round.ts";

export interface DelegateHostsPorts extends FinerRoundPorts {
  readonly finer: Pick<FinerDelegationStore, "saveRound" | "hostPlaces" | "setHost">;
  readonly resolver: NameResolver;
  readonly names: NameWatch;
}

/** Hosts that are asked about in one pass. */
const suspectsPerPass = 4;
/** Hosts that are looked at from elsewhere in one pass. */
const looksPerPass = 2;
/** Between two askings, where the TTL is not longer. */
const leastPauseMs = 60_000;
const mostPauseMs = 3_600_000;
/** A name that is not clear by then is let be. */
const mostAskings = 12;

/** One pass; returns the hosts that are delegated by themselves now. */
export async function delegateHosts(ports: DelegateHostsPorts): Promise<string[]> {
  await findSuspects(ports);
  const delegated: string[] = [];
  for (const suspect of ports.names.due(ports.now().getTime(), suspectsPerPass)) {
    if (await askAround(suspect, ports)) delegated.push(suspect.place.host);
  }
  return delegated;
}

async function findSuspects(ports: DelegateHostsPorts): Promise<void> {
  const noted = ports.names.takeNoted(ports.now().getTime());
  if (noted.size === 0) return;
  let looks = looksPerPass;
  for (const place of await ports.finer.hostPlaces([...noted.keys()])) {
    const { crawlerId, address } = noted.get(place.hostHash)!;
    if (place.byItself) continue;
    if (isElsewhere(address, place, ports.state)) ports.names.suspect(place, crawlerId);
    else if (looks > 0 && ports.names.mayLook(place.hostHash, ports.now().getTime())) {
      looks -= 1;
      await lookFromAfar(place, crawlerId, ports);
    }
  }
}

/** In a subnet of which the coordinator was not told. */
function isElsewhere(address: string, place: HostPlace, state: CoordinatorState): boolean {
  const [seen] = areasOf([address], state);
  if (seen === undefined) return false;
  return !areasOf(place.addresses, state).some(({ subnetId }) => subnetId === seen.subnetId);
}

async function lookFromAfar(place: HostPlace, fetcher: CrawlerId, ports: DelegateHostsPorts): Promise<void> {
  const farthest = farthestFrom(fetcher, ports);
  const [address] = place.addresses;
  if (farthest === null || address === undefined) return;
  const only = [farthest];
  const target = { url: place.url, host: place.host, address };
  const within = { withinSubnetId: place.subnetId, cause: "differs-by-place" } as const;
  const outcome = await finerRound({ target, ...within, first: only, only, byName: true }, ports);
  const seen = outcome?.seen[0]?.addresses[0];
  if (seen !== undefined && isElsewhere(seen, place, ports.state)) ports.names.suspect(place, farthest);
}

function farthestFrom(fetcher: CrawlerId, { fleet, state, excluded }: DelegateHostsPorts): CrawlerId | null {
  const full = excluded();
  const others = fleet.online().filter((crawlerId) => crawlerId !== fetcher && !full.has(crawlerId));
  const rttOf = (crawlerId: CrawlerId) => state.peerRtts.rttMs(fetcher, crawlerId) ?? 0;
  return others.toSorted((a, b) => rttOf(b) - rttOf(a))[0] ?? null;
}

/** True when the host is delegated by itself now. */
async function askAround(suspect: SuspectedHost, ports: DelegateHostsPorts): Promise<boolean> {
  const { place } = suspect;
  const heard = await hearVantages(place, [suspect.witness], ports);
  const nowMs = ports.now().getTime();
  suspect.timesAsked += 1;
  suspect.askAtMs = nowMs + Math.min(mostPauseMs, Math.max(leastPauseMs, (heard?.ttlSeconds ?? 0) * 1000));
  for (const { crawlerId, addresses } of heard?.seen ?? []) {
    addAnswer(suspect, crawlerId, areasOf(addresses, ports.state));
  }
  const verdict = placeVerdict([...suspect.answers.values()].map((answers) => ({ answers })));
  if (verdict === "unclear" && suspect.timesAsked < mostAskings) return false;
  if (verdict === "differs" && heard !== null && heard.outcome.decision === null) return false;
  ports.names.close(place.hostHash, nowMs);
  if (verdict !== "differs" || heard === null) return false;
  return await delegate(place, heard, ports);
}

export interface HeardVantages {
  readonly outcome: FinerOutcome;
  /** What the coordinator and each crawler were told. */
  readonly seen: readonly SeenAnswer[];
  /** Of the coordinator's answer. */
  readonly ttlSeconds: number;
}

/** Asks the coordinator's resolver and a dozen crawlers for the name; null when that cannot be done now. */
export async function hearVantages(
  place: HostPlace,
  first: readonly (CrawlerId | null)[],
  ports: Omit<DelegateHostsPorts, "names">,
): Promise<HeardVantages | null> {
  const answer = await ports.resolver.resolve(place.host);
  if ("failed" in answer) return null;
  const address = answer.addresses[0] ?? place.addresses[0];
  if (address === undefined) return null;
  const outcome = await finerRound(
    {
      target: { url: place.url, host: place.host, address },
      withinSubnetId: place.subnetId,
      cause: "differs-by-place",
      first: first.filter((crawlerId) => crawlerId !== null),
      byName: true,
    },
    ports,
  );
  if (outcome === null) return null;
  const coordinator = { crawlerId: null, addresses: answer.addresses.slice(0, 16) };
  return { outcome, seen: [coordinator, ...outcome.seen], ttlSeconds: answer.ttlSeconds };
}

async function delegate(place: HostPlace, heard: HeardVantages, ports: DelegateHostsPorts): Promise<boolean> {
  const { decision, rttsMs } = heard.outcome;
  if (decision === null) return false;
  const subnetCrawlerId = ports.state.delegationOf(place.subnetId)?.crawlerId ?? null;
  return await ports.finer.setHost(
    {
      ...decision,
      hostHash: place.hostHash,
      subnetId: place.subnetId,
      subnetRttMs: subnetCrawlerId === null ? null : (rttsMs.get(subnetCrawlerId) ?? null),
      seen: heard.seen,
      reason: `${place.host} resolves differently by place; this crawler is nearest to what it sees`,
    },
    reviewTimes(ports.now()),
  );
}

/** Where addresses lie in the registry; those that lie nowhere are left out. */
export function areasOf(addresses: readonly string[], state: CoordinatorState): AnswerArea[] {
  return addresses.flatMap((address) => {
    const subnetId = state.subnetOf(address);
    return subnetId === null ? [] : [{ subnetId, holderId: state.tree.get(subnetId)?.holderId ?? null }];
  });
}
