/**
 * What lies in a space, by SQL over subnets, delegations and the list of sites. A small space is read from its subnets; a
 * large one, or a country, from what is in use everywhere, and kept a while.
 */

import type { Pool } from "pg";
import { enoughSamples } from "#core/format";
import { KeptAnswer, roundedMs } from "../../database/cached-read.ts";
import type { RollUp } from "./who-api.ts";

export type Space =
  | { readonly type: "range"; readonly first: string; readonly last: string }
  /** What it holds, and what lies inside that. */
  | { readonly type: "holder"; readonly holderId: number }
  | { readonly type: "country"; readonly code: string };

/** Null: counting took longer than a page may. */
export type ReadRollUp = (space: Space, now: Date) => Promise<RollUp | null>;

/** A space of more registered subnets is read from what is in use. */
const fewSubnets = 20_000;

/** Large spaces of which the answer is kept. */
const mostKept = 50;

const keptMs = 30_000;

const crawlersNamed = 10;

export function createRollUpReads(pool: Pool, nowMs: () => number): ReadRollUp {
  const kept = new Map<string, KeptAnswer<RollUp | null>>();
  return async (space, now) => {
    const small = smallSpace(space);
    if (small !== null) {
      const ids = await registeredIn(pool, small);
      const registered = ids.length;
      if (registered <= fewSubnets) return await counted(pool, known(ids), { registered, now });
    }
    const key = JSON.stringify(space);
    const before = kept.get(key);
    const large = largeSpace(space) ?? small;
    const count = async () => large && (await counted(pool, large, { registered: null, now }));
    const answer = before ?? new KeptAnswer(count, nowMs, keptMs);
    // The latest asked for stand last.
    kept.delete(key);
    kept.set(key, answer);
    for (const oldest of kept.keys()) {
      if (kept.size <= mostKept) break;
      kept.delete(oldest);
    }
    return await answer.get();
  };
}

/** SQL that gives subnet_id, with its parameters. */
interface SpaceSql {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** By id: of as many as there are the planner knows how many there are, and looks each up. */
const known = (ids: readonly number[]): SpaceSql => ({
  sql: "select unnest($1::int[]) as subnet_id",
  values: [ids],
});

/** One more than are few, where there are more. */
async function registeredIn(pool: Pool, { sql, values }: SpaceSql): Promise<readonly number[]> {
  const { rows } = await pool.query<{ subnet_id: number }>(`${sql} limit ${fewSubnets + 1}`, [...values]);
  return rows.map((row) => row.subnet_id);
}

/** Null: a country has no bounds to look between. */
function smallSpace(space: Space): SpaceSql | null {
  if (space.type === "country") return null;
  if (space.type === "range") {
    const sql = `
      select subnet_id from subnet
      where removed_in is null and first_address between $1::inet and $2::inet and last_address <= $2::inet`;
    return { sql, values: [space.first, space.last] };
  }
  const sql = `
    select distinct inside.subnet_id
    from subnet held
    ${insideHeld}
    where held.holder_id = $1 and held.removed_in is null`;
  return { sql, values: [space.holderId] };
}

/** One look into the index for each range, whatever the planner expects of a range between two columns. */
const insideHeld = `
    cross join lateral (
      select i.subnet_id
      from subnet i
      where i.removed_in is null and i.first_address between held.first_address and held.last_address
        and i.last_address <= held.last_address
      order by i.first_address
      offset 0
    ) inside`;

/** Null: as a small one. */
function largeSpace(space: Space): SpaceSql | null {
  if (space.type === "holder") return null;
  if (space.type === "country") {
    const sql = `
      select subnet_id from site where country = $1 and subnet_id is not null
      union
      select subnet_id from delegation join subnet s using (subnet_id) where s.country = $1 and s.removed_in is null`;
    return { sql, values: [space.code] };
  }
  const sql = `
    select subnet_id
    from (
      select subnet_id from delegation
      union
      select subnet_id from site where subnet_id is not null
    ) used
    join subnet s using (subnet_id)
    where s.removed_in is null and s.first_address between $1::inet and $2::inet and s.last_address <= $2::inet`;
  return { sql, values: [space.first, space.last] };
}

interface RollUpRow
  extends Pick<RollUp, "subnets" | "unassigned" | "hosts" | "dueHosts" | "pages" | "bytes" | "byCrawler"> {
  readonly rtt: RollUp["rtt"];
  /** With those that are not named. */
  readonly all: NonNullable<RollUp["others"]>;
}

/**
 * A piece is a subnet, or those of its hosts that another crawler has than the rest. Of ranges that answer from many places
 * the time says nothing. `now`: the number of its parameter.
 */
const rollUpSql = (space: string, now: number) => `
  with space as materialized (${space}),
  host as materialized (
    select subnet_id, crawler_id, rtt_ms, count(*)::int as hosts,
      (count(*) filter (where standing = 'ready' and due_at <= $${now}::timestamptz))::int as due_hosts,
      sum(pages)::float8 as pages, sum(bytes)::float8 as bytes
    from space
    join site using (subnet_id)
    group by subnet_id, crawler_id, rtt_ms
  ),
  piece as materialized (
    select h.subnet_id, coalesce(h.crawler_id, d.crawler_id) as crawler_id,
      case when not (coalesce(d.anycast, false) and d.crawler_id = h.crawler_id) then h.rtt_ms end as rtt_ms,
      hosts, due_hosts, pages, bytes
    from host h
    left join delegation d using (subnet_id)
    union all
    select d.subnet_id, d.crawler_id, null, 0, 0, 0, 0
    from space
    join delegation d using (subnet_id)
    where not exists (select from host h where h.subnet_id = d.subnet_id)
  ),
  crawled as (
    select crawler_id, count(distinct subnet_id) as subnets, sum(pages) as pages
    from piece
    where crawler_id is not null
    group by crawler_id
  ),
  measured as (
    select rtt_ms, pages, sum(pages) over (order by rtt_ms rows unbounded preceding) as up_to, sum(pages) over () as total
    from piece
    where rtt_ms is not null and pages > 0
  )
  select count(distinct subnet_id)::int as subnets,
    count(distinct subnet_id) filter (where crawler_id is null)::int as unassigned,
    coalesce(sum(hosts), 0)::int as hosts, coalesce(sum(due_hosts), 0)::int as "dueHosts",
    coalesce(sum(pages), 0)::float8 as pages, coalesce(sum(bytes), 0)::float8 as bytes,
    (select json_build_object('pages', coalesce(max(total), 0), 'meanMs', ${roundedMs("sum(rtt_ms * pages) / sum(pages)")},
       'medianMs', ${roundedMs("min(rtt_ms) filter (where 2 * up_to >= total)")})
     from measured) as rtt,
    (select json_build_object('crawlers', count(*), 'subnets', coalesce(sum(subnets), 0), 'pages', coalesce(sum(pages), 0))
     from crawled) as all,
    (select coalesce(json_agg(json_build_object('crawler', name, 'subnets', subnets, 'pages', pages)), '[]')
     from (
       select name, subnets, pages
       from crawled
       join crawler using (crawler_id)
       order by subnets desc, name
       limit ${crawlersNamed}
     ) most) as "byCrawler"
  from piece`;

/** Postgres' code for a statement that was ended by its time limit. */
const queryCanceled = "57014";

async function counted(
  pool: Pool,
  space: SpaceSql,
  { registered, now }: { readonly registered: number | null; readonly now: Date },
): Promise<RollUp | null> {
  const { sql, values } = space;
  try {
    const { rows } = await pool.query<RollUpRow>(rollUpSql(sql, values.length + 1), [...values, now]);
    return rollUpOf(rows[0]!, registered);
  } catch (error) {
    if ((error as { code?: string }).code === queryCanceled) return null;
    throw error;
  }
}

function rollUpOf({ all, rtt, ...row }: RollUpRow, registered: number | null): RollUp {
  const { byCrawler } = row;
  const sum = (of: "subnets" | "pages") => byCrawler.reduce((total, one) => total + one[of], 0);
  const others = {
    crawlers: all.crawlers - byCrawler.length,
    subnets: all.subnets - sum("subnets"),
    pages: all.pages - sum("pages"),
  };
  return {
    ...{ ...row, registered, others: others.crawlers === 0 ? null : others },
    // Too few say nothing.
    rtt: enoughSamples(rtt.pages) ? rtt : { pages: rtt.pages, meanMs: null, medianMs: null },
  };
}
