/**
 * What is due and not being fetched: how long it has waited, and for what. Ages are told of every host that is due,
 * or of a part of them where there are many (table-sample); the longest waiting come from an index, always exactly but
 * for hosts without an address, of which an index has those first that DNS is asked for first.
 */

import type { Pool } from "pg";
import { rangeText } from "#db/range-text";
import { hasLeases } from "../../crawl/frontier/address-turn-writes.ts";
import { paymentsInARow } from "../../crawl/frontier/budgets.ts";
import { heldBackDomains } from "../../crawl/frontier/domain-store.ts";
import { nothingDueReason } from "../../crawl/frontier/hand-out-tasks.ts";
import type { KeptRate } from "../../crawl/frontier/kept-rate.ts";
import { paceReasons } from "../../crawl/frontier/pace-reasons.ts";
import { sampleTables, type TableSample, toldRows, wholeTable } from "../../database/cached-read.ts";
import { isBeyondReach, needsUnspokenIpv6 } from "../../place/crawlers/ipv6-sql.ts";
import { limitsInHand, paceLimit } from "./in-hand-reads.ts";
import {
  type LeftOutUrls,
  type PaceLimit,
  type QueueAge,
  type QueueAges,
  queueFront,
  type WaitingHost,
  type WaitReason,
  waitReasons,
} from "./queue-api.ts";
import { type LimitCount, verdictOf } from "./verdict.ts";

/** Some thirty thousand hosts: each is looked up in three tables, so that they cost more than counting. */
const queueMostBytes = 8 * 2 ** 20;

/**
 * SQL: hosts that could be fetched now, as far as they themselves go, or whose address is not known yet; those that ask
 * to be paid, and rest for a week for that, are not for us and wait for nothing; nor do those that rest since a bot gate
 * answered in their place (bot-gate-reads). $1 is now.
 */
const isOpen = `h.lease_id is null and h.due_at <= $1 and h.opt_out_id is null
  and not ((coalesce(h.payments_asked, 0) >= ${paymentsInARow} or h.challenges is not null) and h.not_before > $1)`;

/** SQL: an index has them in the order in which they became due. */
const isDue = `h.state = 'resolved' and ${isOpen}`;

/**
 * Look-ups in a row without an address, half a minute apart at first and twice as far each time (resolution-store): after
 * eight hours of them a name does not exist, and waits for nothing.
 */
const mostLookUps = 10;

/** SQL: DNS was not asked for its address yet, or has given none. */
const isUnplaced = `(h.state = 'unresolved' or h.state = 'unresolvable' and h.resolve_failures <= ${mostLookUps})`;

/** SQL: an index has them in the order in which DNS is asked for them. */
const hasNoAddress = `h.state in ('unresolved', 'unresolvable') and ${isUnplaced} and ${isOpen}`;

/**
 * SQL: each crawler with what keeps all of its hosts waiting; null: nothing. The day's budget is told from the
 * figures of its quarters of an hour, the last of which may be a minute old.
 */
const standingCrawlers = `
  select c.crawler_id, c.name, c.speaks_ipv6, said.holding_back,
    case
      when c.state = 'offline' or c.revoked_at is not null then 'crawler-offline'
      when c.draining_since is not null or c.state = 'draining' then 'crawler-draining'
      when coalesce(today.fetches, 0) >= c.pages_per_day or coalesce(today.bytes, 0) >= c.bytes_per_day
        then 'budget'
    end as standing,
    coalesce(leased.leases, 0) >= c.concurrent_hosts or said.holding_back <> '[]' as is_full
  from crawler c
  cross join lateral (
    -- What it says when it has nothing to do is no reason to keep a host waiting.
    select case jsonb_typeof(c.heartbeat -> 'holdingBack')
      when 'array' then c.heartbeat -> 'holdingBack' else '[]' end - '${nothingDueReason}' as holding_back
  ) said
  left join (
    select crawler_id, sum(fetches) as fetches, sum(wire_bytes) as bytes
    from crawler_figures
    where quarter >= date_trunc('day', $1::timestamptz, 'UTC')
    group by crawler_id
  ) today using (crawler_id)
  left join (
    select crawler_id, count(*) as leases from lease where closed_at is null group by crawler_id
  ) leased using (crawler_id)`;

/** SQL: it is another crawler's turn at one of the host's addresses, or the address rests. */
const addressIsTaken = `exists (
  select
  from unnest(h.addresses[1:8] || h.seen_addresses) a
  join address_turn t on t.address = address_key(a)
  where t.crawler_id <> c.crawler_id and (${hasLeases("$1")} or t.free_at > $1))`;

const reason = `case
  when h.state <> 'resolved' then 'no-address'
  when ${needsUnspokenIpv6("h")} then 'no-ipv6'
  when c.crawler_id is null or ${isBeyondReach("h", "c")} then 'no-delegation'
  when c.standing is not null then c.standing
  when h.not_before > $1 or ${addressIsTaken} then 'politeness'
  when c.is_full then 'crawler-full'
  else 'in-line'
end`;

const withCrawler = `
  left join delegation d on d.subnet_id = h.subnet_id and h.finer_id is null
  left join finer_delegation f on f.finer_id = h.finer_id
  left join standing c on c.crawler_id = coalesce(f.crawler_id, d.crawler_id)`;

interface AgeRow {
  reason: WaitReason | null;
  /** Of those that wait for the site's pace. */
  pace: PaceLimit | null;
  /** Told of a kind of pace, whatever the reason is. */
  of_pace: boolean;
  hosts: number;
  ages: number[] | null;
  oldest: number | null;
}

const waitingSql = ({ clause }: TableSample) => `
     with standing as (${standingCrawlers}),
     waiting as (
       select extract(epoch from $1::timestamptz - h.due_at)::float8 as age, ${reason} as reason,
         ${paceLimit} as pace
       from frontier_host h ${clause}
       ${withCrawler}
       where (h.state = 'resolved' or ${isUnplaced}) and ${isOpen}
     )`;

/** Tests give `mostBytes` to see an estimate of little. */
export async function queueAges(pool: Pool, now: Date, mostBytes = queueMostBytes): Promise<QueueAges> {
  const { frontier_host: sample = wholeTable } = await sampleTables(pool, ["frontier_host"], mostBytes);
  const { rows } = await pool.query<AgeRow>(
    `${waitingSql(sample)}
     select reason, pace, grouping(pace) = 0 as of_pace, count(*)::float8 as hosts,
       percentile_disc(array[0.5, 0.95]) within group (order by age) as ages, max(age) as oldest
     from waiting
     group by grouping sets ((reason), (reason, pace), ())`,
    [now],
  );
  const counted = rows.filter((row) => !row.of_pace);
  const of = (name: WaitReason | null) =>
    ageOf(
      counted.find((row) => row.reason === name),
      sample,
    );
  const reasons = waitReasons.map((name) => ({ reason: name, ...of(name) })).filter(({ hosts }) => hosts > 0);
  const all = of(null);
  const oldestSeconds = sample.factor === 1 ? all.oldestSeconds : await oldest(pool, now);
  const resting = rows
    .filter((row) => row.of_pace && row.reason === "politeness")
    .map(({ pace, hosts }) => ({ limit: pace!, hosts: Math.round(hosts * sample.factor) }));
  const waiting = reasons.flatMap(({ reason: limit, hosts }) =>
    limit === "politeness" ? [] : [{ limit, hosts }],
  );
  const verdict = verdictOf(summed([...waiting, ...resting, ...(await limitsInHand(pool, now))]));
  return { ...all, oldestSeconds, isEstimate: sample.factor !== 1, reasons, verdict };
}

function summed(counts: readonly LimitCount[]): LimitCount[] {
  const sums = new Map<LimitCount["limit"], number>();
  for (const { limit, hosts } of counts) sums.set(limit, (sums.get(limit) ?? 0) + hosts);
  return [...sums].map(([limit, hosts]) => ({ limit, hosts }));
}

function ageOf(row: AgeRow | undefined, { factor }: TableSample): QueueAge {
  const [median = null, p95 = null] = row?.ages ?? [];
  return {
    hosts: Math.round((row?.hosts ?? 0) * factor),
    medianSeconds: rounded(median),
    p95Seconds: rounded(p95),
    oldestSeconds: rounded(row?.oldest ?? null),
  };
}

const rounded = (seconds: number | null) => (seconds === null ? null : Math.round(seconds));

/** SQL: those that are due for longest, and those without an address whose turn at DNS comes first, so many of each. */
const frontSql = (columns: string, most: string) => `
  (select ${columns} from frontier_host h where ${isDue} order by h.due_at, h.host_hash limit ${most})
  union all
  (select ${columns} from frontier_host h where ${hasNoAddress} order by h.resolve_at limit ${most})`;

async function oldest(pool: Pool, now: Date): Promise<number | null> {
  const { rows } = await pool.query<{ age: number }>(
    `select extract(epoch from $1::timestamptz - min(due_at))::float8 as age
     from (${frontSql("h.due_at", "1")}) h`,
    [now],
  );
  return rounded(rows[0]?.age ?? null);
}

/** Hosts that are looked at: the sum is of those that leave out most. */
const leftOutHosts = 10_000;

/** At their bounds, those first of which most was left out; an index has them in this order. */
export async function leftOutUrls(pool: Pool, shown: number): Promise<LeftOutUrls> {
  const { rows } = await pool.query<{ host: string; urls: number; all_urls: number; all_hosts: number }>(
    `select host, urls, sum(urls) over () as all_urls, count(*) over ()::float8 as all_hosts
     from (
       select host, left_out_urls::float8 as urls
       from frontier_host
       where left_out_urls > 0
       order by left_out_urls desc, host_hash
       limit ${leftOutHosts}
     ) bound
     order by urls desc, host
     limit $1`,
    [shown],
  );
  const { all_urls: urls = 0, all_hosts: hosts = 0 } = rows[0] ?? {};
  return {
    urls,
    hosts,
    more: hosts === leftOutHosts,
    most: rows.map(({ host, urls: of }) => ({ host, urls: of })),
    domains: await heldBackDomains(pool, shown),
  };
}

/** Of a host with a back-off, 0 is none. */
interface WaitingRow extends Omit<WaitingHost, "range" | "slowBecause"> {
  readonly first: string | null;
  readonly last: string | null;
  readonly crawlDelayMs: number | null;
  readonly backOffMs: number | null;
  readonly backedOffAt: string | null;
  readonly capDelayMs: number | null;
  readonly tolerated: KeptRate | null;
}

/** Of the front of the queue, those of one reason or of all. */
export async function longestWaiting(
  pool: Pool,
  query: { readonly reason: WaitReason | null; readonly most: number },
  now: Date,
): Promise<WaitingHost[]> {
  const rows = await toldRows<WaitingRow>(
    pool,
    `with standing as (${standingCrawlers}),
     front as (
       ${frontSql(
         `h.host_hash, h.host, h.state, h.due_at, h.not_before, h.subnet_id, h.finer_id, h.addresses, h.seen_addresses,
           h.crawl_delay_ms, h.back_off_ms, h.backed_off_at, h.cap_delay_ms, h.tolerated`,
         String(queueFront),
       )}
     )
     select h.host, ${reason} as reason, h.due_at as "dueAt", c.name as crawler,
       case when h.not_before > $1 then h.not_before end as "notBefore", host(s.first_address) as first,
       host(s.last_address) as last, h.crawl_delay_ms as "crawlDelayMs", h.back_off_ms as "backOffMs",
       h.backed_off_at as "backedOffAt", h.cap_delay_ms as "capDelayMs", h.tolerated,
       array(
         select word #>> '{}' from jsonb_array_elements(c.holding_back) word where jsonb_typeof(word) = 'string' limit 10
       ) as "holdingBack"
     from front h
     ${withCrawler}
     left join subnet s on s.subnet_id = h.subnet_id
     where $2::text is null or ${reason} = $2
     order by h.due_at, h.host_hash
     limit $3`,
    [now, query.reason, query.most],
  );
  return rows.map(({ first, last, crawlDelayMs, backOffMs, backedOffAt, capDelayMs, tolerated, ...host }) => {
    const isBackedOff = (backOffMs ?? 0) > 0 && backedOffAt !== null;
    const pace = {
      ...{ crawlDelayMs: crawlDelayMs ?? 0, usualMs: null, tolerated },
      ...(isBackedOff ? { backOffMs, backedOffAt } : { backOffMs: null, backedOffAt: null }),
    };
    return {
      ...host,
      range: first === null || last === null ? null : rangeText(first, last),
      slowBecause: host.notBefore === null ? [] : paceReasons({ pace, capDelayMs }, now),
    };
  });
}
