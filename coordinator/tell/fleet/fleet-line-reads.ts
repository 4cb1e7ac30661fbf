/** The fleet as pages show it: each crawler's state, place and share, and one crawler in full. */
import type { Pool } from "pg";
import {
  defaultMostBytes,
  KeptAnswer,
  readsOver,
  roundedMs,
  sampleTables,
  toldRows,
} from "../../database/cached-read.ts";
import { allCrawlers } from "../who/reads.ts";
import { subnetsOfCrawler } from "../who/subnet-reads.ts";
import type { CrawlerDetail } from "./crawler-api.ts";
import type { FleetLine } from "./fleet-api.ts";

const subnetsShown = 50;
/** Of one crawler to others, the nearest. */
const peersShown = 1000;
/** Latest fetches that the outcomes of one crawler are counted over. */
const outcomeWindow = 5000;

/** `nowMs` is a clock that never goes back, for how long the shares are kept. */
export function createFleetLines(pool: Pool, nowMs: () => number) {
  const shares = new KeptAnswer(() => fleetShares(pool), nowMs);
  return {
    ...readsOver(pool, { crawlerDetail }),
    fleet: async (): Promise<FleetLine[]> => {
      const [crawlers, shareOf] = await Promise.all([allCrawlers(pool), shares.get()]);
      return crawlers.map((crawler) => ({ ...crawler, ...(shareOf.get(crawler.crawlerId) ?? noShare) }));
    },
  };
}

type Share = Pick<FleetLine, "subnets" | "pages" | "bodyBytes" | "shippedBytes" | "meanRttMs" | "openLeases">;

/** What each crawler owns and has fetched: told from a part of large tables (table-sample). Callers keep it a while. */
export async function fleetShares(pool: Pool, mostBytes = defaultMostBytes): Promise<Map<number, Share>> {
  const { delegation, page } = await sampleTables(pool, ["delegation", "page"], mostBytes);
  const { rows } = await pool.query<Share & { crawlerId: number }>(
    `select crawler_id as "crawlerId", coalesce(subnets, 0)::int as subnets, ${roundedMs("mean_rtt_ms")} as "meanRttMs",
       coalesce(pages, 0)::int as pages, coalesce(body_bytes, 0)::float8 as "bodyBytes",
       coalesce(shipped_bytes, 0)::float8 as "shippedBytes", coalesce(open_leases, 0)::int as "openLeases"
     from crawler
     left join (
       select crawler_id, round(count(*) * ${delegation.factor}) as subnets, avg(rtt_ms) as mean_rtt_ms
       from delegation ${delegation.clause}
       group by crawler_id
     ) owned using (crawler_id)
     left join (
       select crawler_id, round(count(*) * ${page.factor}) as pages,
         round(sum(body_bytes) * ${page.factor}) as body_bytes,
         round(sum(shipped_bytes) * ${page.factor}) as shipped_bytes
       from page ${page.clause}
       group by crawler_id
     ) fetched using (crawler_id)
     left join (
       select crawler_id, count(*) as open_leases from lease where closed_at is null group by crawler_id
     ) leased using (crawler_id)`,
  );
  return new Map(rows.map(({ crawlerId, ...share }) => [crawlerId, share]));
}

/** Everything beside the crawler itself that its page shows. */
export async function crawlerDetail(pool: Pool, crawlerId: number): Promise<Omit<CrawlerDetail, "crawler">> {
  const [subnets, peers, outcomes] = await Promise.all([
    subnetsOfCrawler(pool, crawlerId, subnetsShown),
    toldRows<CrawlerDetail["peers"][number]>(
      pool,
      `select c.name, ${roundedMs("r.rtt_ms")} as "rttMs", r.method
       from crawler_rtt r
       join crawler c on c.crawler_id = r.to_crawler_id
       where r.from_crawler_id = $1
       order by r.rtt_ms
       limit ${peersShown}`,
      [crawlerId],
    ),
    crawlerOutcomes(pool, crawlerId),
  ]);
  return { subnets, peers, outcomes };
}

/** Over the latest fetches of the whole fleet, the most frequent first. */
export async function crawlerOutcomes(pool: Pool, crawlerId: number): Promise<CrawlerDetail["outcomes"]> {
  const { rows } = await pool.query<CrawlerDetail["outcomes"][number]>(
    `select outcome, count(*)::int as fetches
     from (select crawler_id, outcome from page_fetch order by fetched_at desc limit ${outcomeWindow}) latest
     where crawler_id = $1
     group by outcome
     order by fetches desc`,
    [crawlerId],
  );
  return rows;
}

const noShare: Share = {
  ...{ subnets: 0, pages: 0, bodyBytes: 0, shippedBytes: 0, meanRttMs: null, openLeases: 0 },
};
