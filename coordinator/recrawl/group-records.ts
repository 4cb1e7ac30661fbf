/**
 * The records of channels in priority groups since a plan, as sums over each group (recrawl/priority-groups). A
 * channel is a host, or what is configured of one, its pages are counted as parts of it: six pages fetched of a channel
 * with three are two updates. A task's gap and download time are those of its pages.
 */
import type { Pool } from "pg";
import type { RecrawlGroups, RecrawlPlan } from "./make-plan.ts";
import { plannedChannel } from "./url-sql.ts";

/**
 * Parameters: $1 the plan's time, $2 now, $3 the intervals in force, $4 the last lease before it. `h` is each channel
 * with its group (from 0), its gap, its download time, its tasks and updates. URLs are handed out by host: a channel's
 * share is that of its visits, or of its pages where there were none.
 */
const channelRecords = `
  parted as materialized (
    select distinct host_hash from recrawl_host where channel_id <> 0
  ), fetched as (
    select f.host_hash, v.channel_id, count(*) as visits,
      count(*) filter (where f.outcome in ('fetched', 'unchanged')) as updates,
      avg(f.gap_seconds) filter (where f.outcome in ('fetched', 'unchanged')) as gap_seconds,
      avg(f.total_ms) filter (where f.outcome in ('fetched', 'unchanged')) / 1000 as page_seconds
    from page_fetch f
    cross join lateral (
      select case when f.host_hash in (select host_hash from parted) then (
        select ${plannedChannel("u")}
        from frontier_url u
        where u.host_hash = f.host_hash and u.url_hash = f.url_hash
      ) else 0 end as channel_id
    ) v
    where f.fetched_at > $1 and f.fetched_at <= $2
    group by f.host_hash, v.channel_id
  ), handed as (
    select l.host_hash, sum(l.url_count) as urls
    from lease l
    where l.lease_id > $4::bigint and not l.is_check
    group by l.host_hash
  ), h as (
    select p.host_hash, p.channel_id, p.recrawl_group,
      coalesce(f.gap_seconds, p.gap_seconds, ($3::float8[])[p.recrawl_group + 1]) as gap_seconds,
      coalesce(f.page_seconds * p.pages, p.download_seconds) as download_seconds,
      coalesce(t.urls, 0)::float8 / p.pages * coalesce(
        coalesce(f.visits, 0) / sum(f.visits) over whole,
        p.pages::float8 / sum(p.pages) over whole
      )::float8 as submitted,
      coalesce(f.updates, 0)::float8 / p.pages as updates
    from recrawl_host p
    left join fetched f on f.host_hash = p.host_hash and f.channel_id = p.channel_id
    left join handed t on t.host_hash = p.host_hash
    where p.recrawl_group is not null and p.pages > 0
    window whole as (partition by p.host_hash)
  )`;

const parameters = ({ madeAt, groupIntervalSeconds, lastLeaseId }: RecrawlPlan, now: Date) => [
  madeAt,
  now,
  groupIntervalSeconds,
  lastLeaseId,
];

interface GroupRow {
  readonly channels: number;
  readonly hIntervalSeconds: number | null;
  readonly submitted: number;
  readonly updates: number;
  readonly downloadSeconds: number;
  readonly busyThreads: number;
  readonly enough: number;
}

/** One entry for each group of the plan, most urgent first. */
export async function groupRecords(pool: Pool, plan: RecrawlPlan, now: Date): Promise<RecrawlGroups> {
  const { rows } = await pool.query<GroupRow>(
    `with ${channelRecords}
     select count(h.host_hash)::int as channels,
       avg(h.gap_seconds)::float8 as "hIntervalSeconds",
       coalesce(sum(h.submitted), 0)::float8 as submitted,
       coalesce(sum(h.updates), 0)::float8 as updates,
       coalesce(sum(h.download_seconds), 0)::float8 as "downloadSeconds",
       coalesce(sum(h.download_seconds / nullif(h.gap_seconds, 0)), 0)::float8 as "busyThreads",
       (count(*) filter (where h.updates > 5))::int as enough
     from generate_series(0, $5::int - 1) as place
     left join h on h.recrawl_group = place
     group by place
     order by place`,
    [...parameters(plan, now), plan.groups.length],
  );
  return {
    records: rows.map(({ enough: _enough, ...record }) => record),
    withEnoughUpdates: rows.map(({ enough }) => enough),
  };
}

export async function keepRecords(pool: Pool, plan: RecrawlPlan, now: Date): Promise<void> {
  await pool.query(
    `with ${channelRecords}
     update recrawl_host p
     set gap_seconds = h.gap_seconds, download_seconds = h.download_seconds
     from h
     where p.host_hash = h.host_hash and p.channel_id = h.channel_id and h.updates > 0`,
    parameters(plan, now),
  );
}
