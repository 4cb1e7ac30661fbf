/** The position of an address, range or host in the registry, its crawler, and how that was decided. */

import { note, type Standing, stop } from "#core/explanation";
import { instantWords } from "#core/format";
import type { CrawlerId, HostHash } from "#core/ids";
import { formatAddress, type IpAddress, isIpv6Text, parseAddress } from "#core/ip/address";
import { firstAddress, formatRange, type IpRange, lastAddress, parseRange, rangeHolds } from "#core/ip/range";
import type { NameResolver } from "#core/name-resolver";
import type { CrawlScope } from "../../crawl/frontier/frontier.ts";
import type { WaitingReport } from "../../crawl/frontier/frontier-reports-api.ts";
import type { FrontierOrder } from "../../crawl/frontier/order/strategies.ts";
import { notAsked } from "../../place/delegation/denied-targets.ts";
import { explainReason, slowFetchesIn, slowFetchesWords } from "../../place/delegation/policies/reason.ts";
import { rateFrom } from "../../place/delegation/recalibration/ageing.ts";
import type {
  DelegationChange,
  FinerReport,
  ProbeRound,
  RecordedRound,
} from "../../place/delegation/rounds-api.ts";
import { domainSetHolds } from "../../place/domain-sets/domain-set.ts";
import {
  type Layer,
  layerTexts,
  type Partition,
  partitionHolds,
  partitionOf,
} from "../../place/domain-sets/partition.ts";
import type { PublishedWord } from "../../place/subnets/published-ranges.ts";
import type { ChainSubnet, EffectiveDelegation, Neighbours } from "../../place/subnets/subnets-api.ts";
import type { FleetSets, WhoReads } from "./reads.ts";
import type { AgeingReport, CrawlerReport, PublishedReport } from "./who-api.ts";

const historyShown = 30;

const neighboursShown = 2;

export interface Place {
  readonly chain: readonly ChainSubnet[];
  /** The most specific subnet that is not a single address. */
  readonly leaf: ChainSubnet | null;
  readonly neighbours: Neighbours | null;
  /** Published locations. */
  readonly published: readonly PublishedReport[];
  /** Set only for a single address. */
  readonly effective: EffectiveDelegation | null;
  readonly ageing: AgeingReport | null;
  /** The delegation of only this host or part. */
  readonly finer: FinerReport | null;
  readonly parts: readonly FinerReport[];
  readonly round: ProbeRound | null;
  readonly history: readonly DelegationChange[];
  readonly waiting: WaitingReport | null;
  readonly crawler: CrawlerReport | null;
  /** Whether only IPv6 reaches it and no online crawler speaks IPv6. */
  readonly needsUnspokenIpv6: boolean;
}

function publishedReport({ list, place, range, within }: PublishedWord): PublishedReport {
  const { source, listDate } = list;
  return { source, place, range: formatRange(range), within, listDate };
}

export const emptyPlace: Place = {
  chain: [],
  leaf: null,
  neighbours: null,
  published: [],
  effective: null,
  ageing: null,
  finer: null,
  parts: [],
  round: null,
  history: [],
  waiting: null,
  crawler: null,
  needsUnspokenIpv6: false,
};

interface AskedPlace {
  readonly first: string;
  readonly last: string;
  /** The host, if it is in the frontier. */
  readonly host?: HostHash | null;
}

/** Returns the chain of subnets with the effective delegation. */
export async function placeOf(asked: AskedPlace, ports: WhoPorts): Promise<Place> {
  const { reads } = ports;
  const chain = await reads.chainOf(asked.first, asked.last);
  const leaf = chain.find((subnet) => !subnet.unary) ?? null;
  const published = (await reads.publishedOf(asked.first, asked.last)).map(publishedReport);
  if (leaf === null) return { ...emptyPlace, chain, published };
  const parts = await reads.partsOf(leaf.subnetId);
  const finer = await finerOf(asked, parts, reads);
  const effective = finer ? effectiveFiner(finer, leaf) : effectiveOf(chain, leaf);
  const [crawlers, round, history, waiting, neighbours, ageing] = await Promise.all([
    reads.allCrawlers(),
    effective?.roundId == null ? reads.latestRoundOf(leaf.subnetId) : reads.roundById(effective.roundId),
    reads.historyOf(effective?.subnetId ?? leaf.subnetId, historyShown),
    reads.waitingReport(leaf.subnetId),
    reads.neighboursOf(leaf.subnetId, neighboursShown),
    ageingOf(leaf, { effective, reads }),
  ]);
  return {
    chain,
    leaf,
    neighbours,
    published,
    effective,
    ageing,
    finer,
    parts,
    round: round && (await explained(round, crawlers, reads)),
    history,
    waiting,
    crawler: crawlers.find((crawler) => crawler.crawlerId === effective?.crawler.crawlerId) ?? null,
    needsUnspokenIpv6:
      isIpv6Text(asked.first) &&
      crawlers.every(
        ({ state, revoked, speaksIpv6 }) => state === "offline" || revoked || speaksIpv6 === false,
      ),
  };
}

/** For a known host, the frontier decides; for anything else, its address. */
async function finerOf(
  asked: AskedPlace,
  parts: readonly FinerReport[],
  reads: WhoReads,
): Promise<FinerReport | null> {
  if (asked.host) return await reads.finerOfHost(asked.host);
  return asked.first === asked.last ? partAt(parts, asked.first) : null;
}

function effectiveOf(chain: readonly ChainSubnet[], leaf: ChainSubnet): EffectiveDelegation | null {
  for (const subnet of chain) {
    if (subnet.unary || subnet.delegation === null) continue;
    const inherited = subnet.subnetId !== leaf.subnetId;
    return { ...subnet.delegation, subnetId: subnet.subnetId, range: subnet.range, inherited, finer: null };
  }
  return null;
}

/** Only measured rounds age. Other decisions are not checked again because of their age. */
async function ageingOf(
  { holder, country }: ChainSubnet,
  { effective, reads }: Pick<Place, "effective"> & { readonly reads: WhoReads },
): Promise<AgeingReport | null> {
  if (effective?.cause !== "probe-round" || !effective.measured || effective.finer !== null) return null;
  const counts = await reads.moveCountsOf({ holderId: holder?.holderId ?? null, country });
  const seen = counts.findLast(({ months }) => months > 0);
  if (seen === undefined) return null;
  const { kind, moves, months } = seen;
  return { kind, moves, months, perMonth: rateFrom(counts).perMonth };
}

async function explained(
  round: RecordedRound,
  crawlers: readonly CrawlerReport[],
  reads: WhoReads,
): Promise<ProbeRound> {
  const names = new Map(crawlers.map((crawler) => [crawler.crawlerId, crawler.name]));
  const nameOf = (crawlerId: CrawlerId) => names.get(crawlerId) ?? `crawler ${crawlerId}`;
  const then = await reads.membersAt(new Date(round.startedAt));
  const present = crawlers.filter(({ crawlerId }) => then.has(crawlerId));
  const evidence = slowFetchesIn(round.parameters);
  return {
    ...round,
    reasonWords: [
      ...(evidence ? [slowFetchesWords(evidence)] : []),
      explainReason(round.reason, nameOf),
    ].join(" "),
    notAsked: notAsked(round, present, await reads.crawlerRtts()),
  };
}

export interface WhoPorts {
  readonly reads: WhoReads;
  readonly resolver: NameResolver;
  /** The crawl's limits; null if the settings are not available. */
  readonly scope: CrawlScope | null;
  /** The frontier's order; absent if the settings are not available. */
  readonly order?: FrontierOrder;
  /** The coordinator's domain sets; absent if its settings are not available. */
  readonly domainSets?: readonly string[];
}

// Delegations finer than a subnet: a single host, because its name resolves differently by place, and parts of a leaf that is
// split below its registered range.

/** Returns the part that contains the address, or null if the leaf is not split there. */
function partAt(parts: readonly FinerReport[], text: string): FinerReport | null {
  const address = parseAddress(text);
  if (address === null) return null;
  return parts.find((part) => holds(part.range === null ? null : parseRange(part.range), address)) ?? null;
}

function holds(range: IpRange | null, address: IpAddress): boolean {
  return range !== null && rangeHolds(range, address);
}

function effectiveFiner(finer: FinerReport, leaf: ChainSubnet): EffectiveDelegation {
  const { crawler, measured, rttMs, runnerUp, runnerUpRttMs, cause, since, roundId } = finer;
  const own = { crawler, measured, rttMs, runnerUp, runnerUpRttMs, cause, since, roundId };
  const range = finer.range ?? leaf.range;
  return { ...own, subnetId: leaf.subnetId, range, inherited: false, finer: finer.type };
}

export interface FinerFacts {
  /** The finer delegation that applies to the question. */
  readonly finer: FinerReport | null;
  /** The leaf's parts. */
  readonly parts: readonly FinerReport[];
  readonly leaf: ChainSubnet | null;
}

export function finerLines({ finer, parts, leaf }: FinerFacts): Standing[] {
  // A host's own crawler may also result from domain sets, which `domainSetLines` explains.
  const lines = finer?.type === "host" && finer.cause !== "domain-set" ? [hostLine(finer)] : [];
  if (leaf === null || parts.length === 0) return lines;
  const head = `${leaf.range} is split below its registered range: `;
  const words = head + parts.slice(0, 4).map(partWords(leaf)).join("; ");
  const more = parts.length > 4 ? `; and ${parts.length - 4} more parts` : "";
  return [...lines, { code: "leaf-split", stops: false, words: `${words}${more}.` }];
}

const addressesPerVantage = 3;
const vantagesSpoken = 6;

function hostLine({ crawler, since, seen }: FinerReport): Standing {
  const told = seen
    .slice(0, vantagesSpoken)
    .map(
      (one) =>
        `${one.crawler ?? "the coordinator"} ${one.addresses.slice(0, addressesPerVantage).join(", ")}`,
    )
    .join("; ");
  const words = `This host answers differently by place: delegated by host, to ${crawler.name}, since ${instantWords(since)}.`;
  return { code: "differs-by-place", stops: false, words: told === "" ? words : `${words} Seen by ${told}.` };
}

/** Such as "addresses 10.1.2.0–10.1.2.127 measure 80 ms from the rest and go to tokyo (12.0 ms)". */
const partWords = (leaf: ChainSubnet) => (part: FinerReport) => {
  const restMs = leaf.delegation?.rttMs ?? null;
  const apart =
    part.subnetRttMs === null || restMs === null
      ? "measure apart from the rest"
      : `measure ${Math.round(Math.abs(part.subnetRttMs - restMs))} ms from the rest`;
  const at = part.rttMs === null ? "not measured" : `${part.rttMs.toFixed(1)} ms`;
  return `addresses ${spanOf(part.range ?? "")} ${apart} and go to ${part.crawler.name} (${at})`;
};

/** Shows the first and last address, so that nobody has to calculate with a prefix. */
function spanOf(text: string): string {
  const range = parseRange(text);
  if (range === null) return text;
  return `${formatAddress(firstAddress(range))}–${formatAddress(lastAddress(range))}`;
}

// Says which domain set permits a host's crawler, or why no crawler may have it.

export interface DomainSetFacts {
  readonly host: string;
  readonly fleet: FleetSets;
  /** The coordinator's own sets. */
  readonly own: readonly string[];
}

const namesSpoken = 4;

export function domainSetLines(
  facts: DomainSetFacts | null | undefined,
  crawler: { readonly crawlerId: number; readonly name: string } | null,
): Standing[] {
  if (!facts) return [];
  const asked = { host: facts.host, language: facts.fleet.language };
  const own = partitionOf(facts.own);
  if (!partitionHolds(own, asked)) {
    const words = `${hostWords(facts)} is in none of the domain sets of this coordinator (${setsOf(own)}): it is not crawled from here.`;
    return [stop("no-domain-set", words)];
  }
  if (facts.fleet.crawlers.length === 0) return [];
  const able = facts.fleet.crawlers.filter((one) =>
    partitionHolds(partitionOf(one.operator, one.partner), asked),
  );
  const having = facts.fleet.crawlers.find(({ crawlerId }) => crawlerId === crawler?.crawlerId);
  if (able.length === 0) {
    const theirs = having && ` (${having.name} has ${setsOf(partitionOf(having.operator, having.partner))})`;
    const words = `${hostWords(facts)} is in no crawler's domain sets${theirs ?? ""}: it waits until one is given it.`;
    return [stop("no-domain-set", words)];
  }
  if (having === undefined) return [];
  const partition = partitionOf(having.operator, having.partner);
  if (able.includes(having))
    return partition.length === 0 ? [] : [note("domain-set", heldWords(having.name, partition, facts))];
  const names = able.slice(0, namesSpoken).map(({ name }) => name);
  const more = able.length > namesSpoken ? ` and ${able.length - namesSpoken} more` : "";
  const words =
    `${hostWords(facts)} is in none of ${having.name}'s domain sets (${setsOf(partition)}): ` +
    `it goes to the nearest of ${names.join(", ")}${more}, whose sets hold it.`;
  return [stop("other-domain-set", words)];
}

/** Such as "north may have it by its domain set .gr." */
function heldWords(
  name: string,
  partition: Partition,
  { host, fleet: { language } }: DomainSetFacts,
): string {
  const deciding = partition.map((layer) => layerTexts([firstHolding(layer, { host, language })]).join());
  const sets = [...new Set(deciding)];
  return `${name} may have it by its domain ${sets.length === 1 ? "set" : "sets"} ${sets.join(" and ")}${askedLanguage(language, sets)}.`;
}

function firstHolding(layer: Layer, asked: { readonly host: string; readonly language: string | null }) {
  return layer.find((set) => domainSetHolds(set, asked)) ?? layer[0]!;
}

/** Empty unless a set restricts the language. */
function askedLanguage(language: string | null, sets: readonly string[]): string {
  if (!sets.some((set) => set.includes("lang:"))) return "";
  return language === null
    ? "; the language of its pages is not known yet, so that any may hold it"
    : `; its pages are in ${language}`;
}

function hostWords({ host, fleet: { language } }: DomainSetFacts): string {
  return language === null ? host : `${host} (in ${language})`;
}

const setsOf = (partition: Partition): string =>
  partition.map((layer) => layerTexts(layer).join(" or ")).join(", and ");
