/**
 * What crawlers may not or cannot touch: the lists of their hellos (networks and domains), what they refused when they
 * were asked, subnets without a host that their domain sets hold, and all of IPv6 where they do not speak it. A crawler
 * that denies a target is no candidate for its subnet.
 * The first two are kept in memory alone: a crawler says it anew with every hello.
 */

import { LRUCache } from "lru-cache";
import type { CrawlerId, SubnetId } from "#core/ids";
import { type IpAddress, isIpv6Text, parseAddress, unmapAddress } from "#core/ip/address";
import { type IpRange, parseRange, rangeCovers, rangeHolds } from "#core/ip/range";
import { growingTo } from "#core/small-collections";
import type { CrawlerHello } from "#protocol/messages";
import type { CrawlerName } from "../crawlers/crawler.ts";
import type { HostToHold } from "../domain-sets/domain-set.ts";
import type { SubnetTree } from "../subnets/subnet-tree.ts";
import type { WaitingSubnet } from "./delegation.ts";
import { parseReason } from "./policies/reason.ts";
import { trustInTriangle } from "./policies/round.ts";
import type { RecordedRound, RuledOut } from "./rounds-api.ts";
import type { CoordinatorState } from "./state.ts";

/** A refusal counts for so long: partners change their minds, and tell so with the next hello only. */
const refusalKeptMs = 6 * 3_600_000;

/** Refusals that are remembered; of more, the oldest are forgotten. */
const mostRefusals = 100_000;

interface DenyList {
  readonly networks: readonly IpRange[];
  readonly domains: ReadonlySet<string>;
}

/** What crawlers may have by their domain sets. */
export interface HeldHosts {
  /** False: every crawler may have every host. */
  readonly isPartitioned: () => boolean;
  /** One of the hosts at least. */
  readonly holds: (crawlerId: CrawlerId, hosts: readonly HostToHold[]) => boolean;
}

/** The fleet, of whom some may not speak IPv6, and the subnets that it takes that for. */
type KnownFleet = Pick<CoordinatorState, "crawlers" | "crawler"> & {
  readonly tree: Pick<SubnetTree, "isIpv6">;
};

export class DeniedTargets {
  readonly #held: HeldHosts | null;
  readonly #fleet: KnownFleet | null;
  /** Of the latest records of the fleet, whether all speak IPv6. */
  #looked: { readonly crawlers: KnownFleet["crawlers"]; readonly all: boolean } | null = null;
  readonly #lists = new Map<CrawlerId, DenyList>();
  /** When a refusal is forgotten, by `crawler/subnet`. */
  readonly #refusals = new LRUCache<string, number>(growingTo(mostRefusals));

  /** Without a fleet, everybody speaks IPv6. */
  constructor(held: HeldHosts | null = null, fleet: KnownFleet | null = null) {
    this.#held = held;
    this.#fleet = fleet;
  }

  /** What a hello says, in place of what the one before said. What is no network counts for nothing. */
  setList(crawlerId: CrawlerId, denies: CrawlerHello["denies"]): void {
    const networks = (denies?.networks ?? []).map(parseRange).filter((range) => range !== null);
    const domains = new Set((denies?.domains ?? []).map((domain) => domain.toLowerCase()));
    if (networks.length + domains.size === 0) this.#lists.delete(crawlerId);
    else this.#lists.set(crawlerId, { networks, domains });
  }

  /** It refused a probe or a fetch in this subnet. */
  noteRefusal(crawlerId: CrawlerId, subnetId: SubnetId, nowMs: number): void {
    this.#refusals.set(`${crawlerId}/${subnetId}`, nowMs + refusalKeptMs);
  }

  /** False: nobody has a list or a domain set, nobody refused anything lately, and all speak IPv6. */
  get deniesAnything(): boolean {
    return this.#hasWishes || !this.#allSpeakIpv6();
  }

  #allSpeakIpv6(): boolean {
    if (this.#fleet === null) return true;
    const { crawlers } = this.#fleet;
    if (this.#looked?.crawlers !== crawlers)
      this.#looked = { crawlers, all: !crawlers.some(({ withoutIpv6 }) => withoutIpv6) };
    return this.#looked.all;
  }

  get #hasWishes(): boolean {
    return this.#lists.size + this.#refusals.size > 0 || (this.#held?.isPartitioned() ?? false);
  }

  /** False: any crawler may have the subnet, so that nothing need be read of it. */
  concerns(subnetId: SubnetId): boolean {
    return this.#hasWishes || (this.deniesAnything && this.#fleet!.tree.isIpv6(subnetId));
  }

  speaksIpv6(crawlerId: CrawlerId): boolean {
    return this.#fleet?.crawler(crawlerId)?.withoutIpv6 !== true;
  }

  /** It cannot have the subnet, whatever is in it. */
  deniesSubnet(crawlerId: CrawlerId, subnetId: SubnetId): boolean {
    return !this.speaksIpv6(crawlerId) && this.#fleet!.tree.isIpv6(subnetId);
  }

  /** It does not speak the address's protocol. */
  lacksFamily(crawlerId: CrawlerId, address: string): boolean {
    return !this.speaksIpv6(crawlerId) && isIpv6Text(address);
  }

  denies(crawlerId: CrawlerId, target: Omit<WaitingSubnet, "url">, nowMs: number): boolean {
    if (this.lacksFamily(crawlerId, target.address)) return true;
    if (!this.#hasWishes) return false;
    if (this.#refusedUntilMs(crawlerId, target.subnetId) > nowMs) return true;
    if (this.#held !== null && !this.#held.holds(crawlerId, hostsOf(target))) return true;
    const list = this.#lists.get(crawlerId);
    if (!list) return false;
    return holdsDomain(list.domains, target.host) || holdsAddress(list.networks, target.address);
  }

  /** Asked of every candidate in every round: the key is made only where somebody refused anything. */
  #refusedUntilMs(crawlerId: CrawlerId, subnetId: SubnetId): number {
    return this.#refusals.size === 0 ? 0 : (this.#refusals.get(`${crawlerId}/${subnetId}`) ?? 0);
  }

  /** True when everything in the range is on the list of this crawler. */
  deniesWhole(crawlerId: CrawlerId, range: IpRange): boolean {
    return this.#lists.get(crawlerId)?.networks.some((network) => rangeCovers(network, range)) ?? false;
  }
}

/**
 * Subnets whose crawlers cannot reach them, while somebody is online who can: so many at most, others every turn. A crawler
 * had IPv6 before, or nobody had when it was gone.
 */
export function strandedSubnets(
  ports: {
    readonly state: Pick<CoordinatorState, "crawlers" | "subnetsOf">;
    readonly gateway: { online(): readonly CrawlerId[] };
    readonly denied?: Pick<DeniedTargets, "deniesSubnet" | "speaksIpv6">;
  },
  { most, turn }: { readonly most: number; readonly turn: number },
): SubnetId[] {
  const { state, gateway, denied } = ports;
  if (!denied || !gateway.online().some((crawlerId) => denied.speaksIpv6(crawlerId))) return [];
  const stranded = state.crawlers.flatMap(({ crawlerId, withoutIpv6 }) =>
    withoutIpv6
      ? state.subnetsOf(crawlerId).filter((subnetId) => denied.deniesSubnet(crawlerId, subnetId))
      : [],
  );
  const from = stranded.length <= most ? 0 : (turn * most) % stranded.length;
  return [...stranded.slice(from), ...stranded.slice(0, from)].slice(0, most);
}

/** Of a host by itself nothing is said of its language. */
function hostsOf({ host, hosts }: Pick<WaitingSubnet, "host" | "hosts">): readonly HostToHold[] {
  return hosts ?? [{ host, language: null }];
}

function holdsAddress(networks: readonly IpRange[], text: string): boolean {
  const address: IpAddress | null = parseAddress(text);
  if (address === null) return false;
  const plain = unmapAddress(address);
  return networks.some((network) => rangeHolds(network, plain));
}

/** The host itself, or a domain that it lies below. */
function holdsDomain(domains: ReadonlySet<string>, host: string): boolean {
  if (domains.size === 0) return false;
  const labels = host.toLowerCase().replace(/\.$/, "").split(".");
  return labels.some((_, first) => domains.has(labels.slice(first).join(".")));
}

// Which crawlers a round could leave unasked: RTTs nearly obey the triangle inequality, so a crawler that is
// far from one that answered fast cannot be near the target (design section 5, step 3). A round records the
// bounds of the first crawlers that it ruled out; those of the others follow from today's RTTs between the
// crawlers, by the policy's own rule.

export interface PeerDistance {
  readonly from: number;
  readonly to: number;
  readonly rttMs: number;
}

/** Crawlers without a probe in this round, by lower bound, those without one first. */
export function notAsked(
  round: RecordedRound,
  crawlers: readonly CrawlerName[],
  distances: readonly PeerDistance[],
): RuledOut[] {
  const asked = new Set(round.probes.map((probe) => probe.crawler.crawlerId));
  const boundOf = lowerBounds(round, distances);
  const bestMs = Math.min(...round.probes.map((probe) => probe.rttMs ?? Number.POSITIVE_INFINITY));
  return crawlers
    .filter((crawler) => !asked.has(crawler.crawlerId))
    .map(({ crawlerId, name, state }) => {
      const lowerBoundMs = boundOf(crawlerId);
      const ruledOut = lowerBoundMs !== null && lowerBoundMs >= bestMs;
      return { crawler: { crawlerId, name, state }, lowerBoundMs, ruledOut };
    })
    .sort((a, b) => (a.lowerBoundMs ?? -1) - (b.lowerBoundMs ?? -1));
}

function lowerBounds(
  round: RecordedRound,
  distances: readonly PeerDistance[],
): (crawlerId: number) => number | null {
  const reason = parseReason(round.reason);
  if (reason?.type !== "expected-gain") return () => null;
  const recorded = new Map<number, number>(reason.ruledOut.map((one) => [one.crawlerId, one.lowerBoundMs]));
  const between = new Map(distances.map((one) => [`${one.from} ${one.to}`, one.rttMs]));
  return (crawlerId) => {
    const bounds = round.probes.flatMap(({ crawler, rttMs }) => {
      const apartMs =
        between.get(`${crawler.crawlerId} ${crawlerId}`) ?? between.get(`${crawlerId} ${crawler.crawlerId}`);
      return rttMs === null || apartMs === undefined ? [] : [trustInTriangle * Math.abs(apartMs - rttMs)];
    });
    const today = bounds.length === 0 ? null : Math.max(...bounds);
    const lowerBoundMs = recorded.get(crawlerId) ?? today;
    return lowerBoundMs === null ? null : Math.round(lowerBoundMs * 10) / 10;
  };
}
