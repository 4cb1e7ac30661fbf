/** Converts ranges between the database's form (two addresses) and text. */
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, formatRange, type IpRange, lastAddress, rangeBetween } from "#core/ip/range";

/** Does not validate, because the database contains only valid addresses. */
export function rangeFrom(first: string, last: string): IpRange {
  const from = parseAddress(first);
  const to = parseAddress(last);
  const range = from && to && rangeBetween(from, to);
  if (!range) throw new Error(`the database holds a range that is none: ${first} - ${last}`);
  return range;
}

export function rangeText(first: string, last: string): string {
  return formatRange(rangeFrom(first, last));
}

/**
 * Follows `with recursive` and defines a table `holding (subnet_id)`. Some of its rows may end too early, so check
 * `last_address >= $2`. Takes `holdingParameters`.
 */
export const holdingSubnets = `
  climb as (
    (select subnet_id, parent_id
     from subnet
     where removed_in is null and first_address between $3::inet and $1::inet
     order by first_address desc, last_address asc
     limit 1)
    union
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
  )`;

export function holdingParameters(range: IpRange): readonly [first: string, last: string, floor: string] {
  const floor = range.family === 4 ? "0.0.0.0" : "::";
  return [formatAddress(firstAddress(range)), formatAddress(lastAddress(range)), floor];
}
