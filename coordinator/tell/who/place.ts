/** Where something lies in the registry, who crawls it there, and how that was decided. */

import type { CrawlerId, HostHash } from "#core/ids";
import { isIpv6Text } from "#core/ip/address";
import { formatRange } from "#core/ip/range";
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
import type { PublishedWord } from "../../place/subnets/published-ranges.ts";
import type { ChainSubnet, EffectiveDelegation, Neighbours } from "../../place/subnets/subnets-api.ts";
import { effectiveFiner, partAt } from "./explain-finer.ts";
import type { WhoReads } from "./reads.ts";
import type { AgeingReport, CrawlerReport, PublishedReport } from "./who-api.ts";

const historyShown = 30;

/** On either side. */
const neighboursShown = 2;

export interface Place {
  readonly chain: readonly ChainSubnet[];
  /** The most specific subnet that is not a single address. */
  readonly leaf: ChainSubnet | null;
  readonly neighbours: Neighbours | null;
  /** Where networks publish that it lies. */
  readonly published: readonly PublishedReport[];
  /** Of a single address. */
  readonly effective: EffectiveDelegation | null;
  readonly ageing: AgeingReport | null;
  /** In force for what was asked alone. */
  readonly finer: FinerReport | null;
  readonly parts: readonly FinerReport[];
  readonly round: ProbeRound | null;
  readonly history: readonly DelegationChange[];
  readonly waiting: WaitingReport | null;
  readonly crawler: CrawlerReport | null;
  /** It takes IPv6 to get there, and no crawler that is online speaks it. */
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

export interface AskedPlace {
  readonly first: string;
  readonly last: string;
  /** A host that the frontier has. */
  readonly host?: HostHash | null;
}

/** The chain over a range of addresses, with the delegation in force there. */
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

/** A host that the frontier has goes as the frontier says; anything else as its address does. */
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

/** Whatever is decided otherwise is not checked again by its age. */
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
  /** How far the crawl goes; null where the coordinator's settings are not at hand. */
  readonly scope: CrawlScope | null;
  /** In what order URLs are fetched; left out where the coordinator's settings are not at hand. */
  readonly order?: FrontierOrder;
  /** The coordinator's own domain sets; left out where its settings are not at hand. */
  readonly domainSets?: readonly string[];
}
