/**
 * Reads the queue: due hosts that are not being fetched, how long they have waited and for what; hosts in progress; hosts
 * behind bot gates. Ages count every due host, or a sample if there are many. The longest waiting are read exactly, from an
 * index. Hosts without an address are in the order of their DNS look-ups instead.
 */

import type { Pool } from "pg";
import { rangeText } from "#db/range-text";
import { hasLeases } from "../../crawl/frontier/address-turn-store.ts";
import { paymentsInARow } from "../../crawl/frontier/budgets.ts";
import { heldBackDomains } from "../../crawl/frontier/domain-store.ts";
import { nothingDueReason } from "../../crawl/frontier/hand-out-tasks.ts";
import type { KeptRate } from "../../crawl/frontier/host-pace.ts";
import { paceReasons } from "../../crawl/frontier/host-pace.ts";
import { sampleTables, type TableSample, toldRows, wholeTable } from "../../database/cached-read.ts";
import { isBeyondReach, needsUnspokenIpv6 } from "../../place/crawlers/control-store.ts";
import {
  type GatedHosts,
  type HostInHand,
  type HostsInHand,
  type InHandSort,
  type LeftOutUrls,
  type PaceLimit,
  type QueueAge,
  type QueueAges,
  queueFront,
  type WaitingHost,
  type WaitReason,
  waitReasons,
} from "./queue-api.ts";
import { type LimitCount, verdictOf } from "./queue-words.ts";

/** Enough for some thirty thousand hosts. Each is looked up in three tables, which costs more than counting. */
const queueMostBytes = 8 * 2 ** 20;

/**
 * SQL: hosts that nothing of their own keeps from being fetched, or whose address is unknown. Hosts that demand payment, or
 * are behind a bot gate, and are left alone for a time do not count as waiting. $1 is now.
 */
const isOpen = `h.lease_id is null and h.due_at <= $1 and h.opt_out_id is null
  and not ((coalesce(h.payments_asked, 0) >= ${paymentsInARow} or h.challenges is not null) and h.not_before > $1)`;

/** SQL: an index serves this in the order in which hosts became due. */
const isDue = `h.state = 'resolved' and ${isOpen}`;

/**
 * Maximum number of failed look-ups in a row, half a minute apart at first and doubling (resolution-store). After eight hours
 * of them, a name counts as nonexistent and does not wait.
 */
const mostLookUps = 10;

/** SQL: whether DNS was not asked for its address yet, or has given none. */
const isUnplaced = `(h.state = 'unresolved' or h.state = 'unresolvable' and h.resolve_failures <= ${mostLookUps})`;

/** SQL: an index serves this in the order of DNS look-ups. */
const hasNoAddress = `h.state in ('unresolved', 'unresolvable') and ${isUnplaced} and ${isOpen}`;

/**
 * SQL: each crawler with what blocks all of its hosts, or null. The use of the day's budget is summed from quarters of an
 * hour, the last of which may be a minute old.
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

/** SQL: whether another crawler is using one of the host's addresses, or the address is left alone. */
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
  /** Set only for hosts that wait for the site's pace. */
  pace: PaceLimit | null;
  /** Whether the row counts a kind of pace. */
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

/** Tests pass a small `mostBytes` to get an estimate. */
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

/** Returns SQL for the longest due hosts, and as many hosts without an address in the order of their DNS look-ups. */
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

/** The sum covers this many hosts, those with the most skipped URLs. */
const leftOutHosts = 10_000;

/** Returns hosts at their limits, those with the most skipped URLs first, in the order of an index. */
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

/** A `backOffMs` of 0 means that there is no back-off. */
interface WaitingRow extends Omit<WaitingHost, "range" | "slowBecause"> {
  readonly first: string | null;
  readonly last: string | null;
  readonly crawlDelayMs: number | null;
  readonly backOffMs: number | null;
  readonly backedOffAt: string | null;
  readonly capDelayMs: number | null;
  readonly tolerated: KeptRate | null;
}

/** Returns the hosts at the front of the queue that wait for `reason`, or all of them if it is null. */
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

const backOffEnd = "h.backed_off_at + h.back_off_ms * interval '1 millisecond'";

/** SQL: the end of host `h`'s back-off, or null. $1 is now. */
const backOffUntil = `case when h.back_off_ms > 0 and ${backOffEnd} > $1 then ${backOffEnd} end`;

/** A crawler waits five times as long as an answer took (responseTimeFactor). An answer that takes over 2 s is slow. */
const slowAnswerMs = 2000;

/** The usual pace, one request a second. */
const usualPerHour = 3600;

/** SQL: the `PaceLimit` of host `h`. $1 is now. */
const paceLimit = `case
    when h.back_off_ms > 0 and ${backOffEnd} > $1 then 'back-off'
    when h.cap_delay_ms > 0 and h.cap_delay_ms >= coalesce(h.crawl_delay_ms, 0) then 'site-cap'
    when h.crawl_delay_ms > 0 then 'crawl-delay'
    when (h.tolerated ->> 'perHour')::float8 < ${usualPerHour} then 'tolerated-rate'
    when h.usual_ms >= ${slowAnswerMs} then 'slow-answers'
    else 'usual-pace'
  end`;

/** Leaves out comparisons, because they concern crawlers, not the crawl. */
const inHand = `lease l
     join frontier_host h on h.host_hash = l.host_hash
     join crawler c on c.crawler_id = l.crawler_id
     where l.closed_at is null and not l.is_check`;

const orders: Readonly<Record<InHandSort, string>> = {
  rate: `"urlsPerMinute" desc, host`,
  open: `"openUrls" desc, host`,
  since: "since, host",
  host: "host",
};

export async function hostsInHand(
  pool: Pool,
  { sort, most }: { readonly sort: InHandSort; readonly most: number },
  now: Date,
): Promise<HostsInHand> {
  const rows = await toldRows<HostInHand & { readonly all: number }>(
    pool,
    `select l.host, c.name as crawler, l.granted_at as since, l.expires_at as "expiresAt", l.url_count as urls,
       l.open_urls as "openUrls",
       round(
         60 * (l.url_count - l.open_urls) / greatest(1, extract(epoch from $1::timestamptz - l.granted_at)), 1
       )::float8 as "urlsPerMinute",
       ${paceLimit} as limit, nullif(greatest(h.crawl_delay_ms, h.cap_delay_ms), 0) as "delayMs",
       ${backOffUntil} as "backOffUntil", count(*) over ()::float8 as all
     from ${inHand}
     order by ${orders[sort]}
     limit $2`,
    [now, most],
  );
  const shown = rows.map(({ all: _, ...host }) => host);
  return { at: now.toISOString(), hosts: rows[0]?.all ?? 0, shown };
}

async function limitsInHand(pool: Pool, now: Date): Promise<LimitCount[]> {
  const { rows } = await pool.query<{ limit: PaceLimit; hosts: number }>(
    `select ${paceLimit} as limit, count(*)::float8 as hosts
     from ${inHand}
     group by 1`,
    [now],
  );
  return rows;
}

/** Bytes of frontier_host sampled to estimate the hosts asked. Gated hosts are counted exactly, through their own index. */
const countedBytes = 8 * 2 ** 20;
const hostsShown = 10;

export async function gatedHosts(pool: Pool, now: Date): Promise<GatedHosts> {
  const { frontier_host: sample = wholeTable } = await sampleTables(pool, ["frontier_host"], countedBytes);
  const { rows: counted } = await pool.query<{ asked: number }>(
    `select count(*)::float8 as asked from frontier_host h ${sample.clause} where fetches > 0 or challenges is not null`,
  );
  const { rows: providers } = await pool.query<GatedHosts["providers"][number]>(
    `select challenge_provider as provider, count(*)::float8 as hosts,
       (count(*) filter (where challenged_since > $1::timestamptz - interval '1 day'))::float8 as "newHosts"
     from frontier_host
     where challenges is not null
     group by 1
     order by hosts desc, challenge_provider collate "C"`,
    [now],
  );
  const longest = await toldRows<GatedHosts["longest"][number]>(
    pool,
    `select host, challenge_provider as provider, challenged_since as since, challenges as tries,
       greatest(not_before, due_at) as "nextTryAt"
     from frontier_host
     where challenges is not null
     order by challenged_since, host
     limit ${hostsShown}`,
  );
  return {
    asked: Math.round(counted[0]!.asked * sample.factor),
    hosts: providers.reduce((sum, { hosts }) => sum + hosts, 0),
    providers,
    longest,
  };
}
