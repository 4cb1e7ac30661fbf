/** The chain of subnets that hold an address or a range, straight from the database. */

import { holdingChain } from "#coordinator/subnets/nest";
import { UsageError } from "#core/errors";
import { formatAddress } from "#core/ip/address";
import { firstAddress, formatRange, type IpRange, isUnary, parseRange } from "#core/ip/range";
import { holdingParameters, holdingSubnets } from "#db/holding-subnets";
import { rangeFrom } from "#db/range-text";
import type { Database } from "#db/server-database";

export interface FoundSubnet {
  readonly subnetId: number;
  readonly range: string;
  readonly registry: string;
  readonly country: string | null;
  readonly name: string;
  readonly holder: string | null;
  readonly handle: string | null;
  /** The crawler that this very subnet is delegated to, or null. */
  readonly delegatedTo: string | null;
  /** The generation that it came with. */
  readonly addedIn: number;
}

export interface LookUp {
  /** The address, or the range, in canonical text. */
  readonly asked: string;
  /** From the least to the most specific; empty when nothing in the tree holds it. */
  readonly chain: readonly FoundSubnet[];
  /** Hold it too, but cross a subnet of the chain (subnets/nest has the rule). */
  readonly crossing: readonly FoundSubnet[];
}

interface Row extends Omit<FoundSubnet, "range"> {
  readonly first: string;
  readonly last: string;
  readonly parentId: number | null;
}

type Holding = Omit<Row, "first" | "last"> & { readonly range: IpRange };

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
  const chain = holdingChain(rows);
  const inChain = new Set(chain);
  return {
    asked,
    chain: chain.map(toFound),
    crossing: rows.filter((row) => !inChain.has(row)).map(toFound),
  };
}

const holdingSql = `
  with recursive ${holdingSubnets}
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

async function readHolding(database: Database, range: IpRange): Promise<readonly Holding[]> {
  const { rows } = await database.pool.query<Row>(holdingSql, [...holdingParameters(range)]);
  return rows.map(({ first, last, ...row }) => ({ ...row, range: rangeFrom(first, last) }));
}

function toFound({ range, parentId: _parentId, ...subnet }: Holding): FoundSubnet {
  return { ...subnet, range: formatRange(range) };
}
