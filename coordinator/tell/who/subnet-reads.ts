/** Reads subnets with holders and crawlers: by address, around a subnet, and summed up over a space. */
import type { Pool } from "pg";
import { enoughSamples } from "#core/format";
import { holdingParameters, holdingSubnets, rangeFrom, rangeText } from "#db/range-text";
import { iso, KeptAnswer, roundedMs, roundMs } from "../../database/cached-read.ts";
import { crawlerJson } from "../../place/crawlers/crawler-store.ts";
import { holdingChain } from "../../place/subnets/nest.ts";
import type {
  ChainSubnet,
  Neighbours,
  OwnDelegation,
  SubnetLine,
  SubnetList,
} from "../../place/subnets/subnets-api.ts";
import type { RollUp } from "./who-api.ts";

/** More levels than any registry has. The limit ends a climb in a circular chain. */
const maxDepth = 100;

type ChainRow = Pick<ChainSubnet, "subnetId" | "name" | "country" | "registry" | "holder"> &
  Omit<OwnDelegation, "crawler" | "since"> & {
    readonly parentId: number | null;
    readonly first: string;
    readonly last: string;
    readonly crawler: OwnDelegation["crawler"] | null;
    readonly delegated: Date;
  };

const chainSql = `
  with recursive ${holdingSubnets}
  select s.subnet_id as "subnetId", s.parent_id as "parentId", host(s.first_address) as first,
    host(s.last_address) as last, s.name, s.country, s.registry,
    case when h.holder_id is not null
      then json_build_object('holderId', h.holder_id, 'name', h.name, 'handle', h.handle) end as holder,
    ${crawlerJson("c")} as crawler, ${crawlerJson("r")} as "runnerUp", d.measured, d.rtt_ms as "rttMs",
    d.runner_up_rtt_ms as "runnerUpRttMs", d.cause, d.delegated_at as delegated, d.round_id as "roundId"
  from holding
  join subnet s using (subnet_id)
  left join holder h using (holder_id)
  left join delegation d using (subnet_id)
  left join crawler c on c.crawler_id = d.crawler_id
  left join crawler r on r.crawler_id = d.runner_up_id
  where s.last_address >= $2::inet`;

/** Returns current subnets that contain the range, most specific first. */
export async function chainOf(pool: Pool, first: string, last: string): Promise<ChainSubnet[]> {
  const asked = rangeFrom(first, last);
  const { rows } = await pool.query<ChainRow>(chainSql, [...holdingParameters(asked)]);
  const holding = rows.map((row) => ({
    row,
    subnetId: row.subnetId,
    parentId: row.parentId,
    range: rangeFrom(row.first, row.last),
  }));
  return holdingChain(holding)
    .map(({ row }) => chainSubnet(row))
    .reverse();
}

function chainSubnet({
  subnetId,
  first,
  last,
  name,
  holder,
  country,
  registry,
  ...own
}: ChainRow): ChainSubnet {
  const { crawler, measured, rttMs, runnerUp, runnerUpRttMs, cause, delegated, roundId } = own;
  const unary = first === last;
  const subnet = { subnetId, range: rangeText(first, last), unary, name, holder, country, registry };
  if (crawler === null) return { ...subnet, delegation: null };
  const rtts = { rttMs: roundMs(rttMs), runnerUp, runnerUpRttMs: roundMs(runnerUpRttMs) };
  return { ...subnet, delegation: { crawler, measured, ...rtts, cause, since: iso(delegated), roundId } };
}

type LineRow = Omit<SubnetLine, "range"> & { readonly first: string; readonly last: string };

/** SQL: the subnets of `chosen` with their effective delegation. */
const lineSelect = `
  select chosen.subnet_id as "subnetId", host(chosen.first_address) as first, host(chosen.last_address) as last,
    chosen.name, chosen.country, c.name as crawler, effective.rtt_ms as "rttMs", coalesce(effective.step > 0, false) as inherited
  from chosen
  left join lateral (
    with recursive climb as (
      select chosen.subnet_id, chosen.parent_id, 0 as step
      union all
      select parent.subnet_id, parent.parent_id, climb.step + 1
      from climb
      join subnet parent on parent.subnet_id = climb.parent_id
      where climb.step < ${maxDepth}
        and not exists (select 1 from delegation own where own.subnet_id = climb.subnet_id)
    )
    select d.crawler_id, d.rtt_ms, climb.step
    from climb
    join delegation d using (subnet_id)
    order by climb.step
    limit 1
  ) effective on true
  left join crawler c on c.crawler_id = effective.crawler_id
  order by chosen.first_address, chosen.last_address desc`;

/** Returns registered subnets inside the range, without itself, by address. */
export async function subnetsInside(
  pool: Pool,
  range: { readonly first: string; readonly last: string },
  limit: number,
): Promise<SubnetList> {
  const { rows } = await pool.query<LineRow>(
    `with chosen as (
       select subnet_id, parent_id, first_address, last_address, name, country
       from subnet
       where removed_in is null
         and first_address between $1::inet and $2::inet
         and last_address <= $2::inet
         and (first_address, last_address) <> ($1::inet, $2::inet)
       order by first_address, last_address desc
       limit $3
     )
     ${lineSelect}`,
    [range.first, range.last, limit + 1],
  );
  return listOf(rows, limit);
}

/** A holder's current subnets by address. */
export async function subnetsOfHolder(pool: Pool, holderId: number, limit: number): Promise<SubnetList> {
  const { rows } = await pool.query<LineRow>(
    `with chosen as (
       select subnet_id, parent_id, first_address, last_address, name, country
       from subnet
       where removed_in is null and holder_id = $1
       order by first_address, last_address desc
       limit $2
     )
     ${lineSelect}`,
    [holderId, limit + 1],
  );
  return listOf(rows, limit);
}

/** A crawler's delegations, latest first. */
export async function subnetsOfCrawler(pool: Pool, crawlerId: number, limit: number): Promise<SubnetList> {
  const { rows } = await pool.query<LineRow>(
    `select s.subnet_id as "subnetId", host(s.first_address) as first, host(s.last_address) as last,
       s.name, s.country, c.name as crawler, d.rtt_ms as "rttMs", false as inherited
     from delegation d
     join subnet s using (subnet_id)
     join crawler c using (crawler_id)
     where d.crawler_id = $1 and s.removed_in is null
     order by d.delegated_at desc, d.subnet_id
     limit $2`,
    [crawlerId, limit + 1],
  );
  return listOf(rows, limit);
}

/** Returns the lines in the order of the ids. */
async function subnetLines(pool: Pool, subnetIds: readonly number[]): Promise<SubnetLine[]> {
  if (subnetIds.length === 0) return [];
  const { rows } = await pool.query<LineRow>(
    `with chosen as (
       select subnet_id, parent_id, first_address, last_address, name, country
       from subnet
       where subnet_id = any($1::int[])
     )
     ${lineSelect}`,
    [subnetIds],
  );
  const lines = new Map(rows.map((row) => [row.subnetId, subnetLine(row)]));
  return subnetIds.flatMap((subnetId) => lines.get(subnetId) ?? []);
}

function listOf(rows: readonly LineRow[], limit: number): SubnetList {
  return { subnets: rows.slice(0, limit).map(subnetLine), more: rows.length > limit };
}

function subnetLine({ first, last, ...line }: LineRow): SubnetLine {
  return { ...line, range: rangeText(first, last), rttMs: roundMs(line.rttMs) };
}

// Siblings of a subnet are registered directly below the same parent and adjacent by address. No index lists a subnet's
// children, so each step is one look-up by address: the first range that begins after the previous one can only be inside the
// common parent.

interface Place {
  readonly subnet_id: number;
  readonly parent_id: number | null;
  readonly first_address: string;
  readonly last_address: string;
}

/** Returns at most `each` per side, or null if the current registry has no such subnet. */
export async function neighboursOf(pool: Pool, subnetId: number, each: number): Promise<Neighbours | null> {
  const { rows } = await pool.query<Place>(
    `select ${placeColumns}
     from subnet
     where subnet_id = $1 and removed_in is null`,
    [subnetId],
  );
  const [subnet] = rows;
  if (!subnet) return null;
  const before = await walk(pool, subnet, sides.before, each + 1);
  const after = await walk(pool, subnet, sides.after, each + 1);
  const [linesBefore, linesAfter] = await Promise.all([
    subnetLines(pool, before.slice(0, each)),
    subnetLines(pool, after.slice(0, each)),
  ]);
  return {
    before: linesBefore,
    after: linesAfter,
    moreBefore: before.length > each,
    moreAfter: after.length > each,
  };
}

/** Returns the ids, nearest first. */
async function walk(pool: Pool, from: Place, side: Side, steps: number): Promise<number[]> {
  const { sql, edge } = side;
  const found: number[] = [];
  let at: Place | undefined = from;
  while (at && found.length < steps) {
    const { rows }: { rows: Place[] } = await pool.query<Place>(sql, [at[edge], from.parent_id]);
    at = rows[0];
    if (at) found.push(at.subnet_id);
  }
  return found;
}

/** SQL that limits siblings to the parent or, if there is none, to the address family. */
const withinParent = `
  s.removed_in is null
  and family(s.first_address) = family($1::inet)
  and ($2::int is null or (
    s.subnet_id <> $2
    and s.first_address >= (select first_address from subnet where subnet_id = $2)
    and s.last_address <= (select last_address from subnet where subnet_id = $2)))`;

const placeColumns =
  "subnet_id, parent_id, host(first_address) as first_address, host(last_address) as last_address";

/** SQL for one step from the previous subnet's edge. */
interface Side {
  readonly sql: string;
  readonly edge: "first_address" | "last_address";
}

const afterSql = `
  select ${placeColumns}
  from (
    select * from subnet s
    where s.first_address > $1::inet and ${withinParent}
    order by s.first_address, s.last_address desc
    limit 1
  ) next
  where parent_id is not distinct from $2::int`;

/** The previous range may be nested in the sibling, so the query climbs from it. */
const beforeSql = `
  with recursive climb as (
    select previous.*, 0 as step
    from (
      select s.subnet_id, s.parent_id, s.first_address, s.last_address
      from subnet s
      where s.first_address < $1::inet and ${withinParent}
      order by s.first_address desc, s.last_address
      limit 1
    ) previous
    union all
    select parent.subnet_id, parent.parent_id, parent.first_address, parent.last_address, climb.step + 1
    from climb
    join subnet parent on parent.subnet_id = climb.parent_id
    where climb.parent_id is distinct from $2::int and climb.step < ${maxDepth}
  )
  select ${placeColumns}
  from climb
  where parent_id is not distinct from $2::int`;

const sides = {
  before: { sql: beforeSql, edge: "first_address" },
  after: { sql: afterSql, edge: "last_address" },
} as const satisfies Record<string, Side>;

// Totals over a space, from subnets, delegations and the list of sites. A small space is read from its subnets. A large one,
// or a country, is read from everything in use, and cached.

export type Space =
  | { readonly type: "range"; readonly first: string; readonly last: string }
  /** The holder's subnets and everything nested in them. */
  | { readonly type: "holder"; readonly holderId: number }
  | { readonly type: "country"; readonly code: string };

/** Returns null if counting exceeds the page's time limit. */
type ReadRollUp = (space: Space, now: Date) => Promise<RollUp | null>;

/** Spaces with more subnets are read from what is in use. */
const fewSubnets = 20_000;

/** Maximum number of cached answers for large spaces. */
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
    // This keeps the map in order of use.
    kept.delete(key);
    kept.set(key, answer);
    for (const oldest of kept.keys()) {
      if (kept.size <= mostKept) break;
      kept.delete(oldest);
    }
    return await answer.get();
  };
}

/** SQL that selects subnet_id, with its parameters. */
interface SpaceSql {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** Selects by id, so that the planner knows how many there are and looks each up. */
const known = (ids: readonly number[]): SpaceSql => ({
  sql: "select unnest($1::int[]) as subnet_id",
  values: [ids],
});

/** Returns one more than `fewSubnets` if there are more. */
async function registeredIn(pool: Pool, { sql, values }: SpaceSql): Promise<readonly number[]> {
  const { rows } = await pool.query<{ subnet_id: number }>(`${sql} limit ${fewSubnets + 1}`, [...values]);
  return rows.map((row) => row.subnet_id);
}

/** Returns null for a country, which has no address bounds. */
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

/** Forces one index look-up per range, whatever the planner expects of a range over two columns. */
const insideHeld = `
    cross join lateral (
      select i.subnet_id
      from subnet i
      where i.removed_in is null and i.first_address between held.first_address and held.last_address
        and i.last_address <= held.last_address
      order by i.first_address
      offset 0
    ) inside`;

/** Returns null if the small form should be used. */
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
  /** Totals that include crawlers which are not named. */
  readonly all: NonNullable<RollUp["others"]>;
}

/**
 * A piece is a subnet, or those of its hosts that have another crawler. RTTs of anycast ranges are ignored. `now` is the
 * number of its parameter.
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
    // An RTT from too few samples is not shown.
    rtt: enoughSamples(rtt.pages) ? rtt : { pages: rtt.pages, meanMs: null, medianMs: null },
  };
}
