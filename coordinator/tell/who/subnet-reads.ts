/** Which subnets hold an address, who holds them, and who crawls them. */

import type { Pool } from "pg";
import { holdingParameters, holdingSubnets, rangeFrom, rangeText } from "#db/range-text";
import { iso, roundMs } from "../../database/cached-read.ts";
import { crawlerJson } from "../../place/crawlers/crawler-store.ts";
import { holdingChain } from "../../place/subnets/nest.ts";
import type {
  ChainSubnet,
  Neighbours,
  OwnDelegation,
  SubnetLine,
  SubnetList,
} from "../../place/subnets/subnets-api.ts";

/** Deeper than any registry nests; ends a climb through parents that a fault made circular. */
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

/** Subnets in force that hold first to last, most specific first; empty when the registry has none. */
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

/** SQL: subnets of `chosen` with their own delegation or that of the nearest less specific one. */
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

/** Registered subnets within a range, without the range itself, in the order of their addresses. */
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

/** What a holder has in the registry now, in the order of its addresses. */
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

/** What a crawler has been delegated, latest first. */
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

/** Of these subnets, in the order in which they are named. */
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

// The subnets beside a subnet: those that are registered directly below the same one, next to it by address. No
// index knows a subnet's children, so each step is one look-up by address: the first range that begins after the
// last one is never inside anything but their common parent.

interface Place {
  readonly subnet_id: number;
  readonly parent_id: number | null;
  readonly first_address: string;
  readonly last_address: string;
}

/** At most so many on each side; null when the registry in force has no such subnet. */
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

/** Ids, the nearest first. */
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

/** Where the neighbours may lie: within the parent, or within the same family of addresses where there is none. */
const withinParent = `
  s.removed_in is null
  and family(s.first_address) = family($1::inet)
  and ($2::int is null or (
    s.subnet_id <> $2
    and s.first_address >= (select first_address from subnet where subnet_id = $2)
    and s.last_address <= (select last_address from subnet where subnet_id = $2)))`;

const placeColumns =
  "subnet_id, parent_id, host(first_address) as first_address, host(last_address) as last_address";

/** SQL for one step, from that edge of the subnet before. */
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

/** The range that begins last before this one may be inside the neighbour: from it, up to the neighbour itself. */
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
