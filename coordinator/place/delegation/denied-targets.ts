/**
 * What crawlers may not or cannot fetch: the networks and domains denied in their hellos, targets they refused, subnets
 * without a host that their domain sets hold, and IPv6 if they do not use it. Such a crawler is no candidate for the subnet.
 * Lists and refusals are held in memory only, since every hello repeats them.
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

/** Refusals expire, because partners change their minds and announce it only with the next hello. */
const refusalKeptMs = 6 * 3_600_000;

const mostRefusals = 100_000;

interface DenyList {
  readonly networks: readonly IpRange[];
  readonly domains: ReadonlySet<string>;
}

export interface HeldHosts {
  /** False if every crawler may have every host. */
  readonly isPartitioned: () => boolean;
  readonly holds: (crawlerId: CrawlerId, hosts: readonly HostToHold[]) => boolean;
}

/** The fleet, some of which may not use IPv6, and the subnets that require it. */
type KnownFleet = Pick<CoordinatorState, "crawlers" | "crawler"> & {
  readonly tree: Pick<SubnetTree, "isIpv6">;
};

export class DeniedTargets {
  readonly #held: HeldHosts | null;
  readonly #fleet: KnownFleet | null;
  /** Caches whether all crawlers of the latest fleet use IPv6. */
  #looked: { readonly crawlers: KnownFleet["crawlers"]; readonly all: boolean } | null = null;
  readonly #lists = new Map<CrawlerId, DenyList>();
  /** Expiry of each refusal by `crawler/subnet`. */
  readonly #refusals = new LRUCache<string, number>(growingTo(mostRefusals));

  /** If there is no fleet, every crawler counts as using IPv6. */
  constructor(held: HeldHosts | null = null, fleet: KnownFleet | null = null) {
    this.#held = held;
    this.#fleet = fleet;
  }

  /** Replaces the list of the crawler's former hello. Ignores invalid networks. */
  setList(crawlerId: CrawlerId, denies: CrawlerHello["denies"]): void {
    const networks = (denies?.networks ?? []).map(parseRange).filter((range) => range !== null);
    const domains = new Set((denies?.domains ?? []).map((domain) => domain.toLowerCase()));
    if (networks.length + domains.size === 0) this.#lists.delete(crawlerId);
    else this.#lists.set(crawlerId, { networks, domains });
  }

  /** Records that the crawler refused a probe or fetch in this subnet. */
  noteRefusal(crawlerId: CrawlerId, subnetId: SubnetId, nowMs: number): void {
    this.#refusals.set(`${crawlerId}/${subnetId}`, nowMs + refusalKeptMs);
  }

  /** False if no crawler has a list, a domain set or a recent refusal, and all use IPv6. */
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

  /** False if any crawler may have the subnet, so that nothing needs to be read. */
  concerns(subnetId: SubnetId): boolean {
    return this.#hasWishes || (this.deniesAnything && this.#fleet!.tree.isIpv6(subnetId));
  }

  speaksIpv6(crawlerId: CrawlerId): boolean {
    return this.#fleet?.crawler(crawlerId)?.withoutIpv6 !== true;
  }

  deniesSubnet(crawlerId: CrawlerId, subnetId: SubnetId): boolean {
    return !this.speaksIpv6(crawlerId) && this.#fleet!.tree.isIpv6(subnetId);
  }

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

  /** Expiry of a refusal, or 0. Needed for every candidate in every round, so the key is only built if there are refusals. */
  #refusedUntilMs(crawlerId: CrawlerId, subnetId: SubnetId): number {
    return this.#refusals.size === 0 ? 0 : (this.#refusals.get(`${crawlerId}/${subnetId}`) ?? 0);
  }

  deniesWhole(crawlerId: CrawlerId, range: IpRange): boolean {
    return this.#lists.get(crawlerId)?.networks.some((network) => rangeCovers(network, range)) ?? false;
  }
}

/**
 * A limited number of subnets, different ones on every run, whose crawlers cannot reach them while another online crawler
 * can. Either the crawler lost IPv6, or no crawler had it when the subnet was assigned.
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

/** A single host does not show its language. */
function hostsOf({ host, hosts }: Pick<WaitingSubnet, "host" | "hosts">): readonly HostToHold[] {
  return hosts ?? [{ host, language: null }];
}

function holdsAddress(networks: readonly IpRange[], text: string): boolean {
  const address: IpAddress | null = parseAddress(text);
  if (address === null) return false;
  const plain = unmapAddress(address);
  return networks.some((network) => rangeHolds(network, plain));
}

/** Whether the host itself or a parent domain is listed. */
function holdsDomain(domains: ReadonlySet<string>, host: string): boolean {
  if (domains.size === 0) return false;
  const labels = host.toLowerCase().replace(/\.$/, "").split(".");
  return labels.some((_, first) => domains.has(labels.slice(first).join(".")));
}

// Explains which crawlers a round did not need to ask: RTTs nearly obey the triangle inequality, so a crawler far from a fast
// one cannot be near the target (design section 5, step 3). A round records the bounds of the first crawlers that it ruled
// out. The bounds of the others follow from today's RTTs by the policy's own rule.

interface PeerDistance {
  readonly from: number;
  readonly to: number;
  readonly rttMs: number;
}

/** Crawlers without a probe in this round, by minimum RTT. Those with an unknown minimum come first. */
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
