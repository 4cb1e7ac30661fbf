/**
 * Handles arrivals and departures. An arriving crawler is placed in the IP tree at its public address and owns the subnet it
 * is located in (paper section 4.1). One that moved is measured again, with all its subnets. A crawler that leaves has a
 * grace period, since most come back. After it, its leases are returned and its subnets go to the runners-up.
 */

import { arrivalLingerMs, Gathered } from "#core/coalesce";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import { isIpv6Text, parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import type { CrawlerHello } from "#protocol/messages";
import type { LeaseReturns } from "../crawlers/crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import type { PlaceKey } from "../delegation/placement.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { DelegationStore } from "../delegation/store.ts";

interface PresencePorts {
  readonly crawlers: CrawlerStore;
  readonly delegations: DelegationStore;
  readonly frontier: LeaseReturns;
  readonly state: CoordinatorState;
  readonly log?: { warn(fields: object, message: string): void };
}

interface Arrival {
  readonly crawlerId: CrawlerId;
  readonly hello: CrawlerHello;
  readonly remoteAddress: string;
}

/** Records the arrival. Returns the acknowledged sequence number of the crawler's spool. */
export async function welcomeCrawler(arrival: Arrival, ports: PresencePorts, now: Date): Promise<number> {
  const { crawlerId, hello } = arrival;
  const address = publicAddressOf(arrival);
  const subnetId = address === null ? null : ports.state.subnetOf(address);
  const hadNoIpv6 = ports.state.crawler(crawlerId)?.withoutIpv6 === true;
  // This comes first. If the process ends before the arrival is recorded, the crawler counts as moved again.
  if (isElsewhere(arrival, address, ports.state)) await leavePlace(crawlerId, ports, now);
  const acknowledged = await ports.crawlers.arrive({ crawlerId, hello, address, subnetId, now });
  // The crawler has not measured anything over IPv6 yet.
  if (hadNoIpv6 && hello.capabilities.ipv6) await ports.crawlers.mustJoin(crawlerId, now);
  if (hello.heldLeases !== null) {
    // Leases that the crawler no longer holds would otherwise be idle until they expire.
    await ports.frontier.returnLeasesOf(crawlerId, now, hello.heldLeases.map(asLeaseId));
  }
  await refreshCrawlers(ports, [crawlerId]);
  const crawler = ports.state.crawler(crawlerId);
  const isInReach = crawler?.withoutIpv6 !== true || !isIpv6Text(address ?? "");
  const mayCrawl = crawler?.measuresOnly !== true && isInReach;
  if (subnetId !== null && mayCrawl && isSeenIn(subnetId, arrival, ports)) {
    await takeOwnSubnet(subnetId, crawlerId, ports, now);
  }
  return acknowledged;
}

interface RefreshPorts {
  readonly crawlers: Pick<CrawlerStore, "list">;
  readonly state: CoordinatorState;
}

/** Reads all or some crawlers again. Concurrent calls are combined, and older reads never replace newer ones. */
export async function refreshCrawlers(ports: RefreshPorts, crawlerIds?: readonly CrawlerId[]): Promise<void> {
  const reading = readings.get(ports.state) ?? new Gathered(readCrawlers, mostTogether, arrivalLingerMs);
  readings.set(ports.state, reading);
  await reading.ask({ ports, crawlerIds: crawlerIds ?? null });
}

interface WantedCrawlers {
  readonly ports: RefreshPorts;
  readonly crawlerIds: readonly CrawlerId[] | null;
}

const mostTogether = 1000;
const readings = new WeakMap<CoordinatorState, Gathered<WantedCrawlers, undefined>>();

async function readCrawlers(wanted: readonly WantedCrawlers[]): Promise<readonly undefined[]> {
  const { crawlers, state } = wanted[0]!.ports;
  const some = wanted.map(({ crawlerIds }) => crawlerIds);
  if (some.includes(null)) state.setCrawlers(await crawlers.list());
  else state.putCrawlers(await crawlers.list([...new Set(some.flatMap((ids) => ids ?? []))]));
  return wanted.map(() => undefined);
}

/** The address that its partner states, or else that of its connection, if public. */
function publicAddressOf({ hello, remoteAddress }: Arrival): string | null {
  return [hello.publicAddress, remoteAddress].find(isPublic) ?? null;
}

function isPublic(text: string | null): text is string {
  const address = text === null ? null : parseAddress(text);
  return address !== null && specialPurposeOf(address) === null;
}

/** Whether the crawler moved, by its stated address or by that of its connection. */
function isElsewhere(arrival: Arrival, address: string | null, state: CoordinatorState): boolean {
  const before = state.crawler(arrival.crawlerId);
  if (before === null || before.lastSeenAt === null) return false;
  const { hello, remoteAddress } = arrival;
  if (before.address === null && address === null) {
    const country = hello.place?.country ?? null;
    return country !== null && before.country !== null && country !== before.country;
  }
  const seen = [before.seenAddress ?? null, remoteAddress].map((one) => (isPublic(one) ? one : null));
  return areApart(before.address, address, state) || areApart(seen[0]!, seen[1]!, state);
}

/**
 * Whether two addresses are in different places. Home addresses change daily, so addresses of one holder or AS in one country
 * count as the same place unless published places differ. So do addresses of different families in one country.
 */
function areApart(one: string | null, other: string | null, state: CoordinatorState): boolean {
  if (one === null || other === null || one === other) return false;
  const [was, is] = [one, other].map((address) => {
    const subnetId = state.subnetOf(address);
    return subnetId === null ? null : state.placementOf(subnetId);
  });
  if (!was || !is) return was !== is;
  if (was.subnetKey === is.subnetKey) return false;
  const [places, others] = [was, is].map(({ published = [] }) => published.map(({ place }) => place));
  if (places!.length > 0 && others!.length > 0) return !places!.some((place) => others!.includes(place));
  if (was.country !== is.country) return true;
  const isSame = (a: PlaceKey | null = null, b: PlaceKey | null = null) => a !== null && a === b;
  const areFamilies = parseAddress(one)?.family !== parseAddress(other)?.family;
  return !areFamilies && !isSame(was.holderKey, is.holderKey);
}

const readTogether = 5000;

async function leavePlace(crawlerId: CrawlerId, ports: PresencePorts, now: Date): Promise<void> {
  const { delegations, state, log } = ports;
  const changed = await delegations.leavePlace(crawlerId, now);
  for (let start = 0; start < changed.length; start += readTogether) {
    const read = await delegations.read(changed.slice(start, start + readTogether));
    for (const delegation of read) state.setDelegation(delegation);
  }
  const subnets = state.subnetCountOf(crawlerId);
  log?.warn({ crawlerId, subnets }, "a crawler is at another place: what it measured before is void");
}

/** A stated address alone gives the crawler no subnet if its connection comes from elsewhere. */
function isSeenIn(subnetId: SubnetId, { remoteAddress }: Arrival, { state }: PresencePorts): boolean {
  return !isPublic(remoteAddress) || state.subnetOf(remoteAddress) === subnetId;
}

async function takeOwnSubnet(
  subnetId: SubnetId,
  crawlerId: CrawlerId,
  ports: PresencePorts,
  now: Date,
): Promise<void> {
  if (ports.state.delegationOf(subnetId)) return;
  const taken = await ports.delegations.delegateOwnSubnet(subnetId, crawlerId, now);
  if (!taken) return;
  ports.state.setDelegation({
    subnetId,
    crawlerId,
    measured: true,
    rttMs: null,
    runnerUpId: null,
    runnerUpRttMs: null,
  });
}

export interface DepartureRule {
  readonly departureMs: number;
  /** Start of this coordinator. Before it, no crawler could return. */
  readonly since: Date;
}

/** Crawlers absent for longer than `departureMs` that still own something. */
export function departedCrawlers(state: CoordinatorState, rule: DepartureRule, now: Date): CrawlerId[] {
  const goneMs = (lastSeenAt: Date | null) =>
    now.getTime() - Math.max(rule.since.getTime(), lastSeenAt?.getTime() ?? 0);
  return state.crawlers
    .filter(({ state: presence }) => presence === "offline")
    .filter(({ lastSeenAt }) => goneMs(lastSeenAt) > rule.departureMs)
    .filter(({ crawlerId }) => state.subnetsOf(crawlerId).length > 0)
    .map(({ crawlerId }) => crawlerId);
}
