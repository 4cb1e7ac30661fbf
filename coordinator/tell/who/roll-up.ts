/**
 * What lies in a space: of a country, an organisation or a range, the subnets in use with their crawlers, and what is
 * crawled in them. A subnet is in use when it is assigned to a crawler or has hosts; registered ranges that nobody has
 * met a host in are no part of the crawl.
 */

import { howMany, msText } from "#core/format";
import type { RollUp } from "./who-api.ts";

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

export function meanWords({ meanMs }: RollUp["rtt"]): string {
  return meanMs === null ? "mean RTT: too few yet" : `mean ${msText(meanMs)}`;
}

const count = (value: number) => value.toLocaleString("en-GB");
