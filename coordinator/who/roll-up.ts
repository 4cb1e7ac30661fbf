/**
 * What lies in a space: of a country, an organisation or a range, the subnets in use with their crawlers, and what is
 * crawled in them. A subnet is in use when it is assigned to a crawler or has hosts; registered ranges that nobody has
 * met a host in are no part of the crawl.
 */
import { enoughSamples, howMany, msText } from "#core/format";

export interface RollUp {
  /** Assigned to a crawler, or with hosts. */
  readonly subnets: number;
  /** Registered in all, in use or not; null: not counted, since there are too many. */
  readonly registered: number | null;
  /** Most subnets first; at most `crawlersNamed`. */
  readonly byCrawler: readonly CrawlerShare[];
  /** Crawlers that are not named, together; null: all are. */
  readonly others: OtherCrawlers | null;
  /** Subnets with hosts that are not assigned directly. */
  readonly unassigned: number;
  readonly hosts: number;
  /** Hosts with a page that is due. */
  readonly dueHosts: number;
  readonly pages: number;
  /** Of all fetches so far. */
  readonly bytes: number;
  readonly rtt: WeightedRtt;
}

export interface CrawlerShare {
  readonly crawler: string;
  readonly subnets: number;
  readonly pages: number;
}

interface OtherCrawlers {
  readonly crawlers: number;
  readonly subnets: number;
  readonly pages: number;
}

/** From the subnets' crawlers, each subnet as often as it has pages. */
export interface WeightedRtt {
  /** Pages in subnets that were measured. */
  readonly pages: number;
  /** Null: too few pages to tell. */
  readonly meanMs: number | null;
  readonly medianMs: number | null;
}

export const crawlersNamed = 10;

/** Too few say nothing. */
export function weightedRtt(pages: number, meanMs: number | null, medianMs: number | null): WeightedRtt {
  return enoughSamples(pages) ? { pages, meanMs, medianMs } : { pages, meanMs: null, medianMs: null };
}

/** "14 subnets in use: amsterdam 9, brussels 5; 240 pages; mean 8 ms". */
export function rollUpWords(rollUp: RollUp): string {
  if (rollUp.subnets === 0) return "no subnet in use";
  const shares = [
    ...rollUp.byCrawler.slice(0, namedInWords).map(({ crawler, subnets }) => `${crawler} ${count(subnets)}`),
    ...othersWords(rollUp),
    ...(rollUp.unassigned > 0 ? [`not assigned directly ${count(rollUp.unassigned)}`] : []),
  ];
  return [
    `${howMany(rollUp.subnets, "subnet")} in use: ${shares.join(", ")}`,
    howMany(rollUp.pages, "page"),
    ...(rollUp.pages === 0 ? [] : [meanWords(rollUp.rtt)]),
  ].join("; ");
}

const namedInWords = 4;

function othersWords({ byCrawler, others }: RollUp): string[] {
  const unnamed = byCrawler.slice(namedInWords);
  const crawlers = unnamed.length + (others?.crawlers ?? 0);
  if (crawlers === 0) return [];
  const subnets = unnamed.reduce((sum, one) => sum + one.subnets, others?.subnets ?? 0);
  return [`${howMany(crawlers, "other crawler")} ${count(subnets)}`];
}

export function meanWords({ meanMs }: WeightedRtt): string {
  return meanMs === null ? "mean RTT: too few yet" : `mean ${msText(meanMs)}`;
}

const count = (value: number) => value.toLocaleString("en-GB");
