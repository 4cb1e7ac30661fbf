/** Where something lies in the registry, who crawls it there, and how that was decided. */
import { explainReason } from "#core/delegation/reason";
import { slowFetchesIn, slowFetchesWords } from "#core/delegation/slow-fetches";
import type { CrawlerId } from "#core/ids";
import { notAsked } from "./ruled-out.ts";
import type {
  ChainSubnet,
  CrawlerReport,
  DelegationChange,
  EffectiveDelegation,
  ProbeRound,
  RecordedRound,
  WaitingReport,
} from "./who-answer.ts";
import type { WhoPorts, WhoReads } from "./who-reads.ts";

const historyShown = 30;

export interface Place {
  readonly chain: readonly ChainSubnet[];
  /** The most specific subnet that is not a single address. */
  readonly leaf: ChainSubnet | null;
  readonly effective: EffectiveDelegation | null;
  readonly round: ProbeRound | null;
  readonly history: readonly DelegationChange[];
  readonly waiting: WaitingReport | null;
  readonly crawler: CrawlerReport | null;
}

export const emptyPlace: Place = {
  chain: [],
  leaf: null,
  effective: null,
  round: null,
  history: [],
  waiting: null,
  crawler: null,
};

/** The chain over a range of addresses, with the delegation in force there. */
export async function placeOf(first: string, last: string, ports: WhoPorts): Promise<Place> {
  const { reads } = ports;
  const chain = await reads.chainOf(first, last);
  const leaf = chain.find((subnet) => !subnet.unary) ?? null;
  if (leaf === null) return { ...emptyPlace, chain };
  const effective = effectiveOf(chain, leaf);
  const [crawlers, round, history, waiting] = await Promise.all([
    reads.allCrawlers(),
    effective?.roundId == null ? reads.latestRoundOf(leaf.subnetId) : reads.roundById(effective.roundId),
    reads.historyOf(effective?.subnetId ?? leaf.subnetId, historyShown),
    reads.waitingIn(leaf.subnetId),
  ]);
  return {
    chain,
    leaf,
    effective,
    round: round && (await explained(round, crawlers, reads)),
    history,
    waiting,
    crawler: crawlers.find((crawler) => crawler.crawlerId === effective?.crawler.crawlerId) ?? null,
  };
}

function effectiveOf(chain: readonly ChainSubnet[], leaf: ChainSubnet): EffectiveDelegation | null {
  for (const subnet of chain) {
    if (subnet.unary || subnet.delegation === null) continue;
    const inherited = subnet.subnetId !== leaf.subnetId;
    return { ...subnet.delegation, subnetId: subnet.subnetId, range: subnet.range, inherited };
  }
  return null;
}

async function explained(
  round: RecordedRound,
  crawlers: readonly CrawlerReport[],
  reads: WhoReads,
): Promise<ProbeRound> {
  const names = new Map(crawlers.map((crawler) => [crawler.crawlerId, crawler.name]));
  const nameOf = (crawlerId: CrawlerId) => names.get(crawlerId) ?? `crawler ${crawlerId}`;
  const present = crawlers.filter((crawler) => !crawler.revoked);
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
