/**
 * Input of balancing (paper section 4.4): the daily load of subnets and their known distances.
 *
 * A subnet's pages per day are its hosts' unfetched URLs, wanted within a day, and the fetched ones, each once per
 * recrawl interval, limited per host by politeness. Its bytes are those pages times the host's mean page size, which
 * leans to the default while few pages are measured. Hosts with a finer delegation count for their own crawler.
 */
import type { Pool } from "pg";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import { defaultMeanPageBytes } from "../crawlers/crawler.ts";
import type { CrawlerLoad, SubnetLoad, UnmeasuredAsked, UnmeasuredSubnet } from "./delegation.ts";
import { isFromHere } from "./round-reads.ts";

/** One page a second, the usual pace. */
const mostPagesPerHost = 86_400;
/** Weight of the default page size, in measured pages. */
const pagesOfUsualSize = 5;

/** SQL: pages of one host per day at this recrawl interval. */
export const pagesPerDaySql = (recrawlDays: string) =>
  `least(${mostPagesPerHost}, greatest(0, url_count - fetched_urls) + fetched_urls / ${recrawlDays}::float8)`;

const perHost = `
  select subnet_id, finer_id, pages, pages * (fetched_bytes + ${pagesOfUsualSize * defaultMeanPageBytes}) / (fetches + ${pagesOfUsualSize}) as bytes
  from (
    select subnet_id, finer_id, fetched_bytes, fetches,
      ${pagesPerDaySql("$1")} as pages
    from frontier_host
    where state = 'resolved' and subnet_id is not null
  ) h`;

type Summed = { -readonly [Name in keyof CrawlerLoad]: CrawlerLoad[Name] };

/** One pass over all hosts; one row per crawler that has a subnet, a part or a host. */
export async function crawlerLoads(pool: Pool, recrawlDays: number): Promise<CrawlerLoad[]> {
  const [owned, ofHosts] = await Promise.all([ownedSubnets(pool), hostLoads(pool, recrawlDays)]);
  const sums = new Map<CrawlerId, Summed>();
  for (const row of [...owned, ...ofHosts]) {
    const sum = sums.get(row.crawlerId);
    if (sum === undefined) sums.set(row.crawlerId, { ...row });
    else
      for (const name of ["subnets", "displaced", "pagesPerDay", "bytesPerDay"] as const)
        sum[name] += row[name];
  }
  return [...sums.values()].sort((a, b) => a.crawlerId - b.crawlerId);
}

async function ownedSubnets(pool: Pool): Promise<CrawlerLoad[]> {
  const { rows } = await pool.query<CrawlerLoad>(
    `select crawler_id as "crawlerId", count(*)::int as subnets,
       (count(*) filter (where cause = 'overload'))::int as displaced, 0::float8 as "pagesPerDay", 0::float8 as "bytesPerDay"
     from delegation
     group by crawler_id`,
  );
  return rows;
}

async function hostLoads(pool: Pool, recrawlDays: number): Promise<CrawlerLoad[]> {
  const { rows } = await pool.query<CrawlerLoad>(
    `select coalesce(f.crawler_id, d.crawler_id) as "crawlerId", 0 as subnets, 0 as displaced,
       sum(pages) as "pagesPerDay", sum(bytes) as "bytesPerDay"
     from (${perHost}) host
     left join delegation d on d.subnet_id = host.subnet_id and host.finer_id is null
     left join finer_delegation f on f.finer_id = host.finer_id
     where coalesce(f.crawler_id, d.crawler_id) is not null
     group by 1`,
    [recrawlDays],
  );
  return rows;
}

interface AskedLoads {
  readonly crawlerIds: readonly CrawlerId[];
  readonly displaced: boolean;
}

/** Loads of these crawlers' subnets, and of displaced ones. */
export async function loads(pool: Pool, recrawlDays: number, of: AskedLoads): Promise<SubnetLoad[]> {
  const { rows } = await pool.query<SubnetLoad>(
    `select d.subnet_id as "subnetId", d.crawler_id as "crawlerId", d.rtt_ms as "rttMs",
       coalesce(sum(h.pages), 0) as "pagesPerDay", coalesce(sum(h.bytes), 0) as "bytesPerDay"
     from delegation d
     left join (${perHost}) h on h.subnet_id = d.subnet_id and h.finer_id is null
     where d.crawler_id = any($2::int[]) or ($3 and d.cause = 'overload')
     group by d.subnet_id
     order by d.subnet_id`,
    [recrawlDays, of.crawlerIds, of.displaced],
  );
  return rows;
}

/** Subnets without any measurement that have something to probe. */
export async function unmeasured(
  pool: Pool,
  { limit, dueBy, except, recrawlDays }: UnmeasuredAsked,
): Promise<UnmeasuredSubnet[]> {
  const { rows } = await pool.query<UnmeasuredSubnet>(
    `select d.subnet_id as "subnetId", sum(h.pages) as "pagesPerDay"
     from delegation d
     join (${perHost}) h on h.subnet_id = d.subnet_id and h.finer_id is null
     where not d.measured
       and d.cause <> 'own-subnet'
       and case when $2::timestamptz is null then d.unanswered_rounds = 0 else d.retry_at is null or d.retry_at <= $2 end
       and d.subnet_id <> all($3::int[])
     group by d.subnet_id
     order by 2 desc, d.subnet_id
     limit $4`,
    [recrawlDays, dueBy, except, limit],
  );
  return rows;
}

interface ProbedRtt {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
  readonly method: ProbeMethod;
}

/** From the latest answered round: each crawler's smallest RTT and its method. */
export async function probedRtts(pool: Pool, subnetIds: readonly SubnetId[]): Promise<ProbedRtt[]> {
  const { rows } = await pool.query<ProbedRtt>(
    `select given.subnet_id as "subnetId", p.crawler_id as "crawlerId", min(p.rtt_ms) as "rttMs",
       (array_agg(p.method order by p.rtt_ms))[1] as method
     from unnest($1::int[]) as given (subnet_id)
     cross join lateral (
       select r.round_id, r.method, r.started_at
       from probe_round r
       where r.subnet_id = given.subnet_id
         and exists (
           select from probe p where p.round_id = r.round_id and p.outcome = 'measured' and ${isFromHere("p", "r")}
         )
       order by r.decided_at desc, r.round_id desc
       limit 1
     ) latest
     join probe p on p.round_id = latest.round_id
       and p.outcome = 'measured'
       and p.method = coalesce(latest.method, p.method)
       and ${isFromHere("p", "latest")}
     group by given.subnet_id, p.crawler_id
     order by given.subnet_id, min(p.rtt_ms)`,
    [subnetIds],
  );
  return rows;
}
