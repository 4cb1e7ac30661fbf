/** Converts ranges between the database's form (two addresses) and text. */
import { parseAddress } from "#core/ip/address";
import { formatRange, type IpRange, rangeBetween } from "#core/ip/range";

/** Trusts the database, which contains only valid addresses. */
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
