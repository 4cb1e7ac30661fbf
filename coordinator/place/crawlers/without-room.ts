/** Crawlers that get no new subnet now. */
import type { CrawlerId } from "#core/ids";
import { type CrawlerRecord, type DayBudget, isBelieved } from "./crawler.ts";

/** The fleet as memory has it. */
interface KnownFleet {
  readonly crawlers: readonly CrawlerRecord[];
}

/** Crawlers that get no new subnet: draining, not believed, for measurements only, or their day's pages or bytes are used up. */
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

/** Rounds start by the thousand a second; what is full is looked at so often. */
const roomKeptMs = 200;

/** Of a large fleet less often, for looking takes longer: every 2 s among 10,000. */
const roomKeptMsPerCrawler = 0.2;

/** The same, looked at anew after a moment, and at once when the crawlers are others. */
export function watchRoom(state: KnownFleet, budget: DayBudget): (now: Date) => ReadonlySet<CrawlerId> {
  let seen: { crawlers: KnownFleet["crawlers"]; atMs: number; full: ReadonlySet<CrawlerId> } | null = null;
  return (now) => {
    const { crawlers } = state;
    const atMs = now.getTime();
    // Clocks may also be set back.
    const keptMs = Math.max(roomKeptMs, roomKeptMsPerCrawler * crawlers.length);
    const isFresh = seen !== null && seen.crawlers === crawlers && Math.abs(atMs - seen.atMs) < keptMs;
    if (!isFresh) seen = { crawlers, atMs, full: crawlersWithoutRoom(state, budget, now) };
    return seen!.full;
  };
}
