/** Tables recrawl_plan and recrawl_host: how often pages are fetched again, and why. All coordinators share them. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { inTransaction } from "../../database/transaction.ts";
import { channelOfUrl } from "../frontier/channel-reads.ts";
import type { MeasuredFetches, MeasuredWindow, RecrawlPlan } from "./make-plan.ts";
import { learningVisits } from "./visit-findings.ts";

const plansKept = 1000;

export async function latestPlan(pool: Pool): Promise<RecrawlPlan | null> {
  return (await latestPlans(pool, 1))[0] ?? null;
}

export async function latestPlans(pool: Pool, limit: number): Promise<RecrawlPlan[]> {
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

export async function savePlan(
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

/** Replaces all hosts' multipliers. Hosts that are not named have none. */
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

/** Share of pages that were compared often enough to have an estimate of their own (visit-findings). */
export async function knownShare(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ known: number; pages: number }>(
    `select count(*) filter (where compared_visits >= $1)::float8 as known, count(*)::float8 as pages
     from frontier_url
     where changes_per_day is not null and state = 'due'`,
    [learningVisits],
  );
  const { known, pages } = rows[0]!;
  return pages === 0 ? 0 : known / pages;
}

export async function lastLeaseId(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ id: string }>("select coalesce(max(lease_id), 0) as id from lease");
  return String(rows[0]!.id);
}

/** Updates estimates of channels: of all, or of hosts fetched since `since` and of those that have or had configured channels. */
export async function refreshChannels(pool: Pool, since: Date | null): Promise<void> {
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

interface GroupedChannels {
  readonly channels: number;
  readonly pages: number;
  readonly changesPerDay: number;
}

/** Divides channels into groups of equal size by change rate. Returns each group's channels, pages and mean rate. */
export async function groupChannels(pool: Pool, groups: number): Promise<GroupedChannels[]> {
  await pool.query(
    `update recrawl_host p
     set recrawl_group = given.place
     from (
       select host_hash, channel_id, recrawl_group,
         ntile($1) over (order by changes_per_day desc, host_hash, channel_id) - 1 as place
       from recrawl_host
     ) given
     where p.host_hash = given.host_hash
       and p.channel_id = given.channel_id
       and given.recrawl_group is distinct from given.place`,
    [groups],
  );
  const { rows } = await pool.query<GroupedChannels>(
    `select count(*)::int as channels, sum(pages)::float8 as pages,
       avg(changes_per_day)::float8 as "changesPerDay"
     from recrawl_host
     where recrawl_group is not null
     group by recrawl_group
     order by recrawl_group`,
  );
  return rows;
}

// Measures the fleet's fetches (repeat and first), its limits, and its overdue work.

const dayMs = 86_400_000;

export async function measuredFetches(
  pool: Pool,
  { from, last, now, lateSeconds }: MeasuredWindow,
): Promise<MeasuredFetches> {
  const { rows } = await pool.query<{ again: number; first: number; lateHosts: number; hosts: number }>(
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
  const { again, first, lateHosts, hosts } = rows[0]!;
  // If the clock was set back, the window is empty.
  const days = (since: Date) => Math.max(0, (now.getTime() - since.getTime()) / dayMs);
  const lateShare = hosts === 0 ? 0 : lateHosts / hosts;
  return { windowDays: days(from), sinceLastDays: days(last), again, first, lateShare };
}

export async function allowedPerDay(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pages: number }>(
    `select coalesce(sum(pages_per_day), 0)::float8 as pages
     from crawler
     where state = 'online' and revoked_at is null`,
  );
  return rows[0]!.pages;
}
