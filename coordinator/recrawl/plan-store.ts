/** Tables recrawl_plan, which is shared, and recrawl_host: how often pages are fetched again, and why. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { channelOfUrl } from "../channels/channel-reads.ts";
import { alone } from "../database/bounded-work.ts";
import { summed } from "../database/over-slices.ts";
import { inTransaction } from "../database/transaction.ts";
import type { MeasuredFetches, MeasuredWindow, RecrawlPlan, RecrawlPlanStore } from "./make-plan.ts";
import {
  fetchedPages,
  groupRecords,
  hashesOfHosts,
  keepRecords,
  rankedPages,
  sampledPages,
} from "./sample-store.ts";
import { learningVisits } from "./visit-findings.ts";

/** Older plans are forgotten. */
const plansKept = 1000;

const lockName = "nearcrawl-recrawl-plan";

export function createRecrawlPlanStore(pool: Pool): RecrawlPlanStore {
  return {
    latest: async () => (await plans(pool, 1))[0] ?? null,
    history: async (limit) => await plans(pool, limit),
    save: async (plan, hostMultipliers) => await save(pool, plan, hostMultipliers),
    knownShare: async () => shareOf(await countKnown(pool)),
    refreshChannels: async (since) => await refreshChannels(pool, since),
    groupChannels: async (groups) =>
      (await groupChannels(pool, { numbering: (over) => `ntile($1) ${over}`, value: groups })).map(
        ({ place: _, ...group }) => group,
      ),
    groupRecords: async (plan, now) => await groupRecords(pool, plan, now),
    keepRecords: async (plan, now) => await keepRecords(pool, plan, now),
    pages: async (mostPages) => await sampledPages(pool, mostPages),
    rankedPages: async () => await rankedPages(pool),
    allowedPerDay: async () => await allowedPerDay(pool),
    measured: async (window) => measuredIn([await measuredFetches(pool, window)], window),
    lastLeases: async () => ({ lastLeaseId: await lastLeaseId(pool) }),
    alone: async (work) => await alone(pool, lockName, work),
  };
}

/** What a plan over several slices is made from, and what of it is written, in one of them. */
export const recrawlSlice = (pool: Pool) => ({
  ...createRecrawlPlanStore(pool),
  setMultipliers: async (multipliers: ReadonlyMap<HostHash, number>) =>
    await setMultipliers(pool, multipliers),
  countKnown: async () => await countKnown(pool),
  channelRates: async () => await channelRates(pool),
  /** `ends`: of each group, the number of channels up to its last one. */
  groupByEnds: async (ends: readonly number[]) =>
    await groupChannels(pool, {
      numbering: (over) => `1 + width_bucket(row_number() ${over}, $1::bigint[])`,
      value: ends.slice(0, -1).map((end) => end + 1),
    }),
  fetchedPages: async () => await fetchedPages(pool),
  /** A share of its pages, or all of them where it is above 1. */
  pagesOfOwn: async (share: number) => {
    const mostPages = Math.ceil(share * (await fetchedPages(pool)));
    return await sampledPages(pool, mostPages, await hashesOfHosts(pool));
  },
  measuredPart: async (window: MeasuredWindow) => await measuredFetches(pool, window),
  lastLeaseId: async () => await lastLeaseId(pool),
});

async function plans(pool: Pool, limit: number): Promise<RecrawlPlan[]> {
  const { rows } = await pool.query<{
    made_at: Date;
    strategy: RecrawlPlan["strategy"];
    reason: string;
    plan: Kept;
  }>("select made_at, strategy, reason, plan from recrawl_plan order by plan_id desc limit $1", [limit]);
  return rows.map(({ made_at: madeAt, strategy, reason, plan }) => ({
    ...plan,
    since: new Date(plan.since),
    madeAt,
    strategy,
    reason,
  }));
}

type Kept = Omit<RecrawlPlan, "madeAt" | "strategy" | "reason" | "since"> & { readonly since: string };

async function save(
  pool: Pool,
  plan: RecrawlPlan,
  multipliers: ReadonlyMap<HostHash, number>,
): Promise<void> {
  const { madeAt, strategy, reason, ...kept } = plan;
  await inTransaction(pool, async (client) => {
    await client.query("insert into recrawl_plan (made_at, strategy, reason, plan) values ($1, $2, $3, $4)", [
      madeAt,
      strategy,
      reason,
      JSON.stringify(kept),
    ]);
    await setMultipliers(client, multipliers);
    await client.query(
      "delete from recrawl_plan where plan_id <= (select max(plan_id) from recrawl_plan) - $1::int",
      [plansKept],
    );
  });
}

/** Of all hosts; of those that are not named, none. */
async function setMultipliers(
  client: Pool | PoolClient,
  multipliers: ReadonlyMap<HostHash, number>,
): Promise<void> {
  await client.query(
    `update recrawl_host p
     set multiplier = given.multiplier
     from (
       select h.host_hash, h.channel_id, g.multiplier
       from recrawl_host h
       left join unnest($1::bigint[], $2::float8[]) as g (host_hash, multiplier) on g.host_hash = h.host_hash
       where h.multiplier is distinct from g.multiplier
     ) given
     where p.host_hash = given.host_hash and p.channel_id = given.channel_id`,
    [[...multipliers.keys()], [...multipliers.values()]],
  );
}

export interface KnownPages {
  readonly known: number;
  readonly pages: number;
}

export const shareOf = ({ known, pages }: KnownPages): number => (pages === 0 ? 0 : known / pages);

async function countKnown(pool: Pool): Promise<KnownPages> {
  const { rows } = await pool.query<KnownPages>(
    `select count(*) filter (where compared_visits >= $1)::float8 as known, count(*)::float8 as pages
     from frontier_url
     where changes_per_day is not null and state = 'due'`,
    [learningVisits],
  );
  return rows[0]!;
}

async function lastLeaseId(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ id: string }>("select coalesce(max(lease_id), 0) as id from lease");
  return String(rows[0]!.id);
}

/** Of hosts that were fetched since then, or of all; those that have channels, or had some, always. */
async function refreshChannels(pool: Pool, since: Date | null): Promise<void> {
  await pool.query(
    `with parted as materialized (
       select host_hash from channel
       union
       select host_hash from recrawl_host where channel_id <> 0
     ), found as materialized (
       select u.host_hash, v.channel_id, avg(u.changes_per_day) as changes_per_day, count(*) as pages
       from frontier_url u
       cross join lateral (
         select case when u.host_hash in (select host_hash from parted) then ${channelOfUrl("u")} else 0 end as channel_id
       ) v
       where u.changes_per_day is not null
         and ($1::timestamptz is null
           or u.host_hash in (select f.host_hash from page_fetch f where f.fetched_at >= $1)
           or u.host_hash in (select host_hash from parted))
       group by u.host_hash, v.channel_id
     ), gone as (
       delete from recrawl_host p
       where p.host_hash in (select host_hash from parted)
         and not exists (select from found f where f.host_hash = p.host_hash and f.channel_id = p.channel_id)
     )
     insert into recrawl_host (host_hash, channel_id, changes_per_day, pages)
     select host_hash, channel_id, changes_per_day, pages
     from found
     on conflict (host_hash, channel_id) do update
     set changes_per_day = excluded.changes_per_day, pages = excluded.pages`,
    [since],
  );
}

export interface GroupedChannels {
  readonly channels: number;
  readonly pages: number;
  readonly changesPerDay: number;
}

export interface PlacedChannels extends GroupedChannels {
  /** Of the group, from 0. */
  readonly place: number;
}

/** `numbering`: an SQL window function that numbers groups from 1. */
async function groupChannels(
  pool: Pool,
  { numbering, value }: { readonly numbering: (window: string) => string; readonly value: unknown },
): Promise<PlacedChannels[]> {
  await pool.query(
    `update recrawl_host p
     set recrawl_group = given.place
     from (
       select host_hash, channel_id, recrawl_group,
         ${numbering("over (order by changes_per_day desc, host_hash, channel_id)")} - 1 as place
       from recrawl_host
     ) given
     where p.host_hash = given.host_hash
       and p.channel_id = given.channel_id
       and given.recrawl_group is distinct from given.place`,
    [value],
  );
  const { rows } = await pool.query<PlacedChannels>(
    `select recrawl_group as place, count(*)::int as channels, sum(pages)::float8 as pages,
       avg(changes_per_day)::float8 as "changesPerDay"
     from recrawl_host
     where recrawl_group is not null
     group by recrawl_group
     order by recrawl_group`,
  );
  return rows;
}

export interface ChannelRate {
  /** 200 times the logarithm of changes a day: rates of one half per cent together. */
  readonly rate: number;
  readonly channels: number;
}

/** How many channels change how often, most often first: some thousands of rows, however many channels there are. */
async function channelRates(pool: Pool): Promise<ChannelRate[]> {
  const { rows } = await pool.query<ChannelRate>(
    `select round(200 * ln(greatest(1e-9, least(changes_per_day::float8, 1e9))))::int as rate, count(*)::int as channels
     from recrawl_host
     group by 1
     order by 1 desc`,
  );
  return rows;
}

// What the fleet fetched, again and for the first time, what it may, and how much of its work is late.

const dayMs = 86_400_000;

export interface MeasuredPart {
  readonly again: number;
  readonly first: number;
  readonly lateHosts: number;
  readonly hosts: number;
}

async function measuredFetches(
  pool: Pool,
  { from, now, lateSeconds }: MeasuredWindow,
): Promise<MeasuredPart> {
  const { rows } = await pool.query<MeasuredPart>(
    `select fetches.again, fetches.first, hosts.late as "lateHosts", hosts.hosts
     from (
       select count(gap_seconds)::float8 as again, (count(*) - count(gap_seconds))::float8 as first
       from page_fetch
       where fetched_at > $1 and fetched_at <= $2 and outcome not in ('refused-by-robots', 'refused-address')
     ) fetches, (
       select count(*) filter (where due_at < $3)::float8 as late, count(*)::float8 as hosts
       from frontier_host
       where state = 'resolved' and fetched_urls > 0 and opt_out_id is null
     ) hosts`,
    [from, now, new Date(now.getTime() - lateSeconds * 1000)],
  );
  return rows[0]!;
}

/** Of all slices. */
export function measuredIn(
  parts: readonly MeasuredPart[],
  { from, last, now }: MeasuredWindow,
): MeasuredFetches {
  const { again, first, lateHosts, hosts } = summed(parts, ["again", "first", "lateHosts", "hosts"]);
  // A clock that was set back leaves no window.
  const days = (since: Date) => Math.max(0, (now.getTime() - since.getTime()) / dayMs);
  const lateShare = hosts === 0 ? 0 : lateHosts / hosts;
  return { windowDays: days(from), sinceLastDays: days(last), again, first, lateShare };
}

async function allowedPerDay(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pages: number }>(
    `select coalesce(sum(pages_per_day), 0)::float8 as pages
     from crawler
     where state = 'online' and revoked_at is null`,
  );
  return rows[0]!.pages;
}
