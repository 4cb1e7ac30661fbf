/** Tables routing_segments and routing_origin, as far as the registry in force has a routing table: who announces what. */
import type { Pool } from "pg";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress } from "#core/ip/range";
import {
  blockOf,
  type Family,
  joinedRanges,
  lastAtOrBefore,
  mostSpecific,
  OriginTable,
  prefixText,
  unpackPrefixes,
  unpackSegments,
} from "./routing-table.ts";

/** The routing table of the import in force: no row where it has none. */
const tableInForce = `
  select routing_table_id
  from registry_generation
  where state = 'applied'
  order by generation desc
  limit 1`;

/** A million segments are some 600 rows of 16 to 24 KB. */
export async function readOriginTable(pool: Pool): Promise<OriginTable> {
  const { rows } = await pool.query<{ family: Family; segments: Buffer }>(
    `select family(first_address) as family, segments
     from routing_segments
     where routing_table_id = (${tableInForce})
     order by first_address`,
  );
  const of = (family: Family) =>
    unpackSegments(
      family,
      rows.filter((row) => row.family === family).map(({ segments }) => segments),
    );
  return rows.length === 0 ? OriginTable.empty : new OriginTable({ 4: of(4), 6: of(6) });
}

/** Who announces an address. */
export interface Announcement {
  readonly asNumber: number;
  /** The most specific prefix over it. */
  readonly prefix: string;
}

/** By reading two rows. Null: nobody announces it, or no routing table was imported. */
export async function announcementOf(pool: Pool, addressText: string): Promise<Announcement | null> {
  const address = parseAddress(addressText);
  if (address === null) return null;
  const { family } = address;
  const block = blockOf(address);
  const { rows } = await pool.query<{ segments: Buffer }>(
    `select segments
     from routing_segments
     where routing_table_id = (${tableInForce}) and first_address <= $1::inet and family(first_address) = $2
     order by first_address desc
     limit 1`,
    [formatAddress(address), family],
  );
  if (rows[0] === undefined) return null;
  const { starts, asNumbers } = unpackSegments(family, [rows[0].segments]);
  const asNumber = asNumbers[lastAtOrBefore(starts, block)] ?? 0;
  if (asNumber === 0) return null;
  const packed = await prefixesOf(pool, asNumber);
  const found = packed && mostSpecific(family, unpackPrefixes(family, packed[family]), block);
  return found && { asNumber, prefix: prefixText(family, found.firstBlock, found.length) };
}

/** What an AS announces. */
export interface AnnouncedSpace {
  readonly asNumber: number;
  readonly ipv4Prefixes: number;
  readonly ipv6Prefixes: number;
  /** The first prefixes, in the order of addresses. */
  readonly prefixes: readonly string[];
  /** The addresses of all, as few ranges as there can be. */
  readonly ranges: readonly { readonly first: string; readonly last: string }[];
}

/** Null: it announces nothing that the routing table has. */
export async function announcedSpaceOf(
  pool: Pool,
  asNumber: number,
  prefixLimit: number,
): Promise<AnnouncedSpace | null> {
  const packed = await prefixesOf(pool, asNumber);
  if (packed === null) return null;
  const families = ([4, 6] as const).map((family) => {
    const prefixes = [...unpackPrefixes(family, packed[family])];
    return { family, prefixes, ranges: joinedRanges(family, prefixes) };
  });
  const [ipv4, ipv6] = families;
  return {
    asNumber,
    ipv4Prefixes: ipv4?.prefixes.length ?? 0,
    ipv6Prefixes: ipv6?.prefixes.length ?? 0,
    prefixes: families
      .flatMap(({ family, prefixes }) =>
        prefixes
          .slice(0, prefixLimit)
          .map(({ firstBlock, length }) => prefixText(family, firstBlock, length)),
      )
      .slice(0, prefixLimit),
    ranges: families.flatMap(({ ranges }) => ranges.map(boundsOf)),
  };
}

/** Whether a routing table is in force at all. */
export async function hasRoutingTable(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ id: number | null }>(`select (${tableInForce}) as id`);
  return rows[0]?.id != null;
}

const boundsOf = (range: IpRange) => ({
  first: formatAddress(firstAddress(range)),
  last: formatAddress(lastAddress(range)),
});

async function prefixesOf(pool: Pool, asNumber: number): Promise<Record<Family, Buffer> | null> {
  const { rows } = await pool.query<{ ipv4: Buffer; ipv6: Buffer }>(
    `select ipv4, ipv6 from routing_origin where routing_table_id = (${tableInForce}) and as_number = $1`,
    [asNumber],
  );
  return rows[0] === undefined ? null : { 4: rows[0].ipv4, 6: rows[0].ipv6 };
}
