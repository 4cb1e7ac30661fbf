/**
 * What rounds and hosts show of delegations, for balancing (paper section 4.4) and for planning checks: the daily load of
 * subnets, their known distances, and how long decisions last.
 *
 * A subnet's pages per day are its hosts' unfetched URLs, wanted within a day, and the fetched ones, each once per recrawl
 * interval, limited per host by politeness. Its bytes are those pages times the host's mean page size, which is close to the
 * default while few pages are measured. Hosts with a finer delegation count for their own crawler.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import { readRows } from "../../database/cached-read.ts";
import { columnsOf } from "../../database/transaction.ts";
import { defaultMeanPageBytes } from "../crawlers/crawler.ts";
import {
  type AgedDelegation,
  type CrawlerLoad,
  nearlyBestMs,
  type SubnetLoad,
  type UnmeasuredAsked,
  type UnmeasuredSubnet,
} from "./delegation.ts";
import type { CheckOutcome, MoveCounts, MoveRates, RateKind } from "./recalibration/ageing.ts";
import { decidedByMeasuring, isFromHere } from "./round-store.ts";

/** One page a second, the usual pace. */
const mostPagesPerHost = 86_400;
/** The default page size counts as this many measured pages. */
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

/** Reads all hosts in one pass. Returns one row per crawler that has a subnet, a part or a host. */
export const crawlerLoads = async (pool: Pool, recrawlDays: number): Promise<CrawlerLoad[]> =>
  await readRows<CrawlerLoad>(
    pool,
    `select "crawlerId", sum(subnets)::int as subnets, sum(displaced)::int as displaced,
       sum(pages) as "pagesPerDay", sum(bytes) as "bytesPerDay"
     from (
       select crawler_id as "crawlerId", count(*) as subnets, count(*) filter (where cause = 'overload') as displaced,
         0::float8 as pages, 0::float8 as bytes
       from delegation
       group by 1
       union all
       select coalesce(f.crawler_id, d.crawler_id), 0, 0, sum(pages), sum(bytes)
       from (${perHost}) host
       left join delegation d on d.subnet_id = host.subnet_id and host.finer_id is null
       left join finer_delegation f on f.finer_id = host.finer_id
       where coalesce(f.crawler_id, d.crawler_id) is not null
       group by 1
     ) load
     group by 1
     order by 1`,
    [recrawlDays],
  );

/** Loads of these crawlers' subnets, and of displaced ones. */
export const loads = async (
  pool: Pool,
  recrawlDays: number,
  crawlerIds: readonly CrawlerId[],
  { displaced }: { readonly displaced: boolean },
): Promise<SubnetLoad[]> =>
  await readRows<SubnetLoad>(
    pool,
    `select d.subnet_id as "subnetId", d.crawler_id as "crawlerId", d.rtt_ms as "rttMs",
       coalesce(sum(h.pages), 0) as "pagesPerDay", coalesce(sum(h.bytes), 0) as "bytesPerDay"
     from delegation d
     left join (${perHost}) h on h.subnet_id = d.subnet_id and h.finer_id is null
     where d.crawler_id = any($2::int[]) or ($3 and d.cause = 'overload')
     group by d.subnet_id
     order by d.subnet_id`,
    [recrawlDays, crawlerIds, displaced],
  );

/** Subnets without any measurement that have something to probe. */
export const unmeasured = async (
  pool: Pool,
  { limit, dueBy, except, recrawlDays }: UnmeasuredAsked,
): Promise<UnmeasuredSubnet[]> =>
  await readRows<UnmeasuredSubnet>(
    pool,
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

interface ProbedRtt {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
  readonly method: ProbeMethod;
}

/** Each crawler's smallest RTT and its method, from the latest answered round. */
export const probedRtts = async (pool: Pool, subnetIds: readonly SubnetId[]): Promise<ProbedRtt[]> =>
  await readRows<ProbedRtt>(
    pool,
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

/**
 * Delegations decided by a round before a time, oldest first after a position, with their daily fetches. Leaves out those
 * assigned by load or inherited, which a new round would undo.
 */
export const decidedBefore = async (
  pool: Pool,
  before: Date,
  behind: Pick<AgedDelegation, "subnetId" | "decidedAt"> | null,
  limit: number,
): Promise<AgedDelegation[]> =>
  await readRows<AgedDelegation>(
    pool,
    `select d.subnet_id as "subnetId", d.delegated_at as "decidedAt",
       coalesce((select sum(fetches)::float8 from site s where s.subnet_id = d.subnet_id), 0) / 7 as "pagesPerDay"
     from (
       select subnet_id, delegated_at
       from delegation
       where cause = 'probe-round'
         and measured
         and delegated_at < $1
         and (delegated_at, subnet_id) > ($2::timestamptz, $3::int)
       order by delegated_at, subnet_id
       limit $4
     ) d
     order by d.delegated_at, d.subnet_id`,
    [before, behind?.decidedAt ?? "-infinity", behind?.subnetId ?? 0, limit],
  );

/**
 * The latest rounds that checked a decision, each with its predecessor. A crawler that is only a few ms nearer does not count
 * as a move. If the former crawler no longer answers, the loss is unknown.
 */
export async function checkOutcomes(
  pool: Pool,
  mostRounds: number,
): Promise<(CheckOutcome & { readonly subnetId: SubnetId })[]> {
  const rows = await readRows<CheckOutcome & { readonly subnetId: SubnetId }>(
    pool,
    `with latest as (
       select round_id, subnet_id, cause, decided_at, crawler_id, method
       from probe_round
       where ${decidedByMeasuring}
       order by round_id desc
       limit $1
     ),
     checked as (
       select *, lag(crawler_id) over earlier as before_id, lag(decided_at) over earlier as before_at
       from latest
       window earlier as (partition by subnet_id order by decided_at, round_id)
     )
     select c.subnet_id as "subnetId", extract(epoch from c.decided_at - c.before_at)::float8 / 86400 as days,
       c.crawler_id <> c.before_id and coalesce(old.rtt_ms - new.rtt_ms > $2, true) as moved,
       (old.rtt_ms - new.rtt_ms)::float8 as "lostMs"
     from checked c
     left join probe old
       on old.round_id = c.round_id and old.crawler_id = c.before_id and old.method = c.method and old.rtt_ms is not null
     left join probe new
       on new.round_id = c.round_id and new.crawler_id = c.crawler_id and new.method = c.method and new.rtt_ms is not null
     where c.before_id is not null and c.cause in ('refresh', 'slow-fetches', 'sampled')`,
    [mostRounds, nearlyBestMs],
  );
  return rows.map((row) => (row.moved ? row : { ...row, lostMs: 0 }));
}

/** Replaces the known rates (table move_rate, for display) within the caller's transaction. */
export async function saveMoveRates(client: PoolClient, rates: MoveRates): Promise<void> {
  const rows = [...rates.all()].map((one) => ({ ...one, key: String(one.key) }));
  await client.query("delete from move_rate");
  await client.query(
    `insert into move_rate (kind, key, moves, months, lost_ms)
     select * from unnest($1::text[], $2::text[], $3::int[], $4::float8[], $5::float8[])`,
    columnsOf(rows, ["kind", "key", "moves", "months", "lostMs"]),
  );
}

/** Counts for each kind of a subnet, from the least to the most specific. Empty before anything is learned. */
export const moveCountsOf = async (
  pool: Pool,
  { holderId, country }: { readonly holderId: number | null; readonly country: string | null },
): Promise<(MoveCounts & { readonly kind: RateKind })[]> =>
  await readRows<MoveCounts & { readonly kind: RateKind }>(
    pool,
    `select kind, moves, months, lost_ms as "lostMs"
     from move_rate
     where (kind, key) in (('all', '0'), ('country', $1), ('holder', $2))
     order by array_position(array['all', 'country', 'holder'], kind)`,
    [country, holderId === null ? null : String(holderId)],
  );
