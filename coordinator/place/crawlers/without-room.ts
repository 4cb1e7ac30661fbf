/** Determines which crawlers get no new subnet at present. */
import type { CrawlerId } from "#core/ids";
import { type CrawlerRecord, type DayBudget, isBelieved } from "./crawler.ts";

/** The fleet as held in memory. */
interface KnownFleet {
  readonly crawlers: readonly CrawlerRecord[];
}

/** A crawler gets no new subnet when it is draining, distrusted, for measurements only, or has used up its daily pages or bytes. */
export function crawlersWithoutRoom(state: KnownFleet, budget: DayBudget, now: Date): ReadonlySet<CrawlerId> {
  const full = state.crawlers.filter(
    (crawler) =>
      crawler.state === "draining" ||
      crawler.measuresOnly === true ||
      !isBelieved(crawler) ||
      budget.left(crawler, now) <= 0,
  );
  return new Set(full.map(({ crawlerId }) => crawlerId));
}

/** Thousands of rounds may start per second, so the answer is cached for this time. */
const roomKeptMs = 200;

/** Extra caching time per crawler, since a large fleet takes longer to check: 2 s for 10,000. */
const roomKeptMsPerCrawler = 0.2;

/** Like `crawlersWithoutRoom`, but cached briefly and recomputed when the crawlers change. */
export function watchRoom(state: KnownFleet, budget: DayBudget): (now: Date) => ReadonlySet<CrawlerId> {
  let seen: { crawlers: KnownFleet["crawlers"]; atMs: number; full: ReadonlySet<CrawlerId> } | null = null;
  return (now) => {
    const { crawlers } = state;
    const atMs = now.getTime();
    // The clock may also be set back.
    const keptMs = Math.max(roomKeptMs, roomKeptMsPerCrawler * crawlers.length);
    const isFresh = seen !== null && seen.crawlers === crawlers && Math.abs(atMs - seen.atMs) < keptMs;
    if (!isFresh) seen = { crawlers, atMs, full: crawlersWithoutRoom(state, budget, now) };
    return seen!.full;
  };
}
