/** Shares of subnets in words and colours. */
import { msText, tooFewWords } from "#core/format";
import type { CrawlerId } from "#core/ids";
import { crawlerColour, nobodysColour, othersColour } from "../../web/format.ts";
import type { CountryLine, SharePart } from "./explore-api.ts";
import { type Counts, nobody } from "./explored-world.ts";

export type CrawlerName = (crawlerId: CrawlerId) => string | null;

/** The name shown for a delegated crawler that is no longer in the fleet. */
export const removedCrawler = "removed crawler";

/** Returns the crawlers with the most subnets by name, then all others together, then what nobody crawls. */
export function shareParts(counts: Counts, crawlerName: CrawlerName, most: number): SharePart[] {
  const { named, rest } = ranked(counts, most);
  const parts = named.map(
    ([crawlerId, subnets]): SharePart => ({
      label: crawlerName(crawlerId) ?? removedCrawler,
      kind: "crawler",
      colour: crawlerColour(crawlerId),
      subnets,
    }),
  );
  const others = rest.reduce((sum, [, count]) => sum + count, 0);
  const without = counts.get(nobody) ?? 0;
  if (others > 0) parts.push({ label: "others", kind: "others", colour: othersColour, subnets: others });
  if (without > 0)
    parts.push({
      label: "registered, not crawled",
      kind: "none",
      colour: nobodysColour,
      subnets: without,
    });
  return parts;
}

type Ranked = readonly (readonly [CrawlerId, number])[];

/** Returns crawlers by number of subnets: the named ones, and the rest. */
export function ranked(counts: Counts, most: number): { readonly named: Ranked; readonly rest: Ranked } {
  const all = [...counts]
    .filter((one): one is [CrawlerId, number] => one[0] !== nobody)
    .sort(([a, more], [b, fewer]) => fewer - more || a - b);
  return { named: all.slice(0, most), rest: all.slice(most) };
}

/** Counts subnets with a crawler, by their own delegation or a less specific one's. */
export function crawledIn(counts: Counts): number {
  let crawled = 0;
  for (const [crawler, count] of counts) if (crawler !== nobody) crawled += count;
  return crawled;
}

/** Such as "amsterdam: 9; brussels: 5; registered, not crawled: 2". */
export const shareWords = (parts: readonly SharePart[]): string =>
  parts.map(({ label, subnets }) => `${label}: ${subnets.toLocaleString("en-GB")}`).join("; ");

export function medianText({ crawled, medianRttMs }: CountryLine): string {
  if (medianRttMs !== null) return msText(medianRttMs);
  return crawled > 0 ? tooFewWords : "–";
}
