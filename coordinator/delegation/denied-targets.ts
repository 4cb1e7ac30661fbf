/**
 * What crawlers may not touch: the lists of their hellos (networks and domains), what they refused when they were
 * asked, and subnets without a host that their domain sets hold. A crawler that denies a target is no candidate for its subnet.
 * The first two are kept in memory alone: a crawler says it anew with every hello.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { type IpAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { type IpRange, parseRange, rangeCovers, rangeHolds } from "#core/ip/range";
import type { CrawlerHello } from "#protocol/messages";
import type { CrawlerName } from "../crawlers/crawler.ts";
import type { HostToHold } from "../domain-sets/domain-set.ts";
import type { WaitingSubnet } from "./delegation.ts";
import { parseReason } from "./policies/reason.ts";
import { trustInTriangle } from "./policies/round.ts";
import type { RecordedRound, RuledOut } from "./round-reads.ts";

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

export class DeniedTargets {
  readonly #held: HeldHosts | null;
  readonly #lists = new Map<CrawlerId, DenyList>();
  /** When a refusal is forgotten, by `crawler/subnet`; the oldest first. */
  readonly #refusals = new Map<string, number>();

  constructor(held: HeldHosts | null = null) {
    this.#held = held;
  }

  /** What a hello says, in place of what the one before said. What is no network counts for nothing. */
  setList(crawlerId: CrawlerId, denies: CrawlerHello["denies"]): void {
    const networks = (denies?.networks ?? []).map(parseRange).filter((range) => range !== null);
    const domains = new Set((denies?.domains ?? []).map((domain) => domain.toLowerCase()));
    if (networks.length + domains.size === 0) this.#lists.delete(crawlerId);
    else this.#lists.set(crawlerId, { networks, domains });
  }

  /** It refused a probe or a fetch in this subnet, or won it by a report that cannot be true. */
  noteRefusal(crawlerId: CrawlerId, subnetId: SubnetId, nowMs: number, keptMs = refusalKeptMs): void {
    const key = `${crawlerId}/${subnetId}`;
    this.#refusals.delete(key);
    this.#refusals.set(key, nowMs + keptMs);
    for (const oldest of this.#refusals.keys()) {
      if (this.#refusals.size <= mostRefusals) return;
      this.#refusals.delete(oldest);
    }
  }

  /** False: nobody has a list or a domain set, and nobody refused anything lately. */
  get deniesAnything(): boolean {
    return this.#lists.size + this.#refusals.size > 0 || (this.#held?.isPartitioned() ?? false);
  }

  denies(crawlerId: CrawlerId, target: Omit<WaitingSubnet, "url">, nowMs: number): boolean {
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
