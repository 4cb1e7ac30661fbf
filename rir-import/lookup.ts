/** The chain of subnets that hold an address or a range, straight from the database. */
import { UsageError } from "#core/errors";
import { formatAddress } from "#core/ip/address";
import { firstAddress, formatRange, type IpRange, isUnary, lastAddress, parseRange } from "#core/ip/range";
import type { Database } from "#db/connect";
import { rangeFrom } from "./database/range-text.ts";

export interface FoundSubnet {
  /** Null when it comes straight from files. */
  readonly subnetId: number | null;
  readonly range: string;
  readonly registry: string;
  readonly country: string | null;
  readonly name: string;
  readonly holder: string | null;
  readonly handle: string | null;
  /** The crawler that this very subnet is delegated to, or null. */
  readonly delegatedTo: string | null;
  /** The generation that it came with; null when it comes straight from files. */
  readonly addedIn: number | null;
}

export interface LookUp {
  /** The address, or the range, in canonical text. */
  readonly asked: string;
  /** From the least to the most specific; empty when nothing in the tree holds it. */
  readonly chain: readonly FoundSubnet[];
  /** Hold it too, but cross a subnet of the chain (core/subnet/nest has the rule). */
  readonly crossing: readonly FoundSubnet[];
}

interface Row extends Omit<FoundSubnet, "range"> {
  readonly first: string;
  readonly last: string;
  readonly parentId: number | null;
}

/** What a person asks for: an address or a range. Throws UsageError when the text is neither. */
export function readAsked(text: string): { readonly range: IpRange; readonly asked: string } {
  const range = parseRange(text.trim());
  if (!range) throw new UsageError(`"${text.slice(0, 80)}" is neither an address nor a range`);
  return { range, asked: isUnary(range) ? formatAddress(firstAddress(range)) : formatRange(range) };
}

/** Throws UsageError when the text is neither an address nor a range. */
export async function lookUp(database: Database, text: string): Promise<LookUp> {
  const { range, asked } = readAsked(text);
  const rows = await readHolding(database, range);
  const chain = chainOf(rows);
  const inChain = new Set(chain);
  return {
    asked,
    chain: chain.map(toFound),
    crossing: rows.filter((row) => !inChain.has(row)).map(toFound),
  };
}

/**
 * Every subnet in force that holds the whole range: the subnet that starts last before it or with it, those
 * above that one, and the few that cross others and so may hold it beside them. What crosses nothing and
 * holds the range holds that first subnet too, hence stands above it.
 */
const holdingSql = `
  with recursive climb as (
    (select subnet_id, parent_id
     from subnet
     where removed_in is null and first_address between $3::inet and $1::inet
     order by first_address desc, last_address asc
     limit 1)
    union all
    select p.subnet_id, p.parent_id
    from climb
    join subnet p on p.subnet_id = climb.parent_id
  ),
  holding as (
    select subnet_id from climb
    union
    select subnet_id
    from subnet
    where crosses and removed_in is null
      and first_address between $3::inet and $1::inet and last_address >= $2::inet
  )
  select c.subnet_id as "subnetId", host(c.first_address) as first, host(c.last_address) as last,
    c.parent_id as "parentId", c.registry, c.country, c.name, h.name as holder, h.handle,
    k.name as "delegatedTo", c.added_in as "addedIn"
  from holding
  join subnet c using (subnet_id)
  left join holder h using (holder_id)
  left join delegation d on d.subnet_id = c.subnet_id
  left join crawler k using (crawler_id)
  where c.last_address >= $2::inet
  order by c.first_address, c.last_address desc`;

async function readHolding(database: Database, range: IpRange): Promise<readonly Row[]> {
  const { rows } = await database.pool.query<Row>(holdingSql, [
    formatAddress(firstAddress(range)),
    formatAddress(lastAddress(range)),
    range.family === 4 ? "0.0.0.0" : "::",
  ]);
  return rows;
}

/** The most specific (the smallest; of equal sizes the one that starts later) and its parents, top down. */
function chainOf(rows: readonly Row[]): readonly Row[] {
  const byId = new Map(rows.map((row) => [row.subnetId, row]));
  const chain: Row[] = [];
  let next: Row | undefined = [...rows].sort(compareSizes)[0];
  while (next !== undefined) {
    chain.unshift(next);
    next = next.parentId === null ? undefined : byId.get(next.parentId);
  }
  return chain;
}

function compareSizes(a: Row, b: Row): number {
  const size = (row: Row) => {
    const range = rangeFrom(row.first, row.last);
    return { bits: BigInt(range.last) - BigInt(range.first), first: BigInt(range.first) };
  };
  const [one, other] = [size(a), size(b)];
  if (one.bits !== other.bits) return one.bits < other.bits ? -1 : 1;
  return one.first > other.first ? -1 : 1;
}

function toFound({ first, last, parentId: _parentId, ...row }: Row): FoundSubnet {
  return { ...row, range: formatRange(rangeFrom(first, last)) };
}
