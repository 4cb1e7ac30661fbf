/**
 * The subnets beside a subnet: those that are registered directly below the same one, next to it by address. No
 * index knows a subnet's children, so each step is one look-up by address: the first range that begins after the
 * last one is never inside anything but their common parent.
 */
import type { Pool } from "pg";
import type { Neighbours } from "../who/who-answer.ts";
import { subnetLines } from "./subnet-reads.ts";

/** Deeper than any registry nests; ends a climb through parents that a fault made circular. */
const maxDepth = 100;

interface Place {
  readonly subnet_id: number;
  readonly parent_id: number | null;
  readonly first_address: string;
  readonly last_address: string;
}

/** At most so many on each side; null when the registry in force has no such subnet. */
export async function neighboursOf(pool: Pool, subnetId: number, each: number): Promise<Neighbours | null> {
  const { rows } = await pool.query<Place>(
    `select subnet_id, parent_id, host(first_address) as first_address, host(last_address) as last_address
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
