/**
 * Tables routing_table, routing_origin and routing_segments: who announces which addresses, as the files of an import say.
 * A table is written whole and never changed; a generation refers to one, so that a rollback and a roll forward need not
 * touch it. An import of the same routes refers to the table that is there.
 */
import type { PoolClient } from "pg";
import {
  emptyPrefixes,
  type Family,
  firstAddressOf,
  type OriginatedPrefixes,
  packPrefixes,
  packSegments,
  prefixText,
  type RoutingTable,
  segmentsOf,
  unpackPrefixes,
} from "#coordinator/subnets/routing-table";
import { TooFewRoutes } from "#core/errors";
import { formatAddress } from "#core/ip/address";
import type { MultiOrigin, SettledRoutes } from "../tree/routes.ts";

/** What an import does to the routing table. */
export interface RoutingChanges {
  /** Prefixes of the table in force, and of the files'. 0 and 0: neither has one. */
  readonly before: number;
  readonly after: number;
  readonly ipv4Prefixes: number;
  readonly ipv6Prefixes: number;
  /** ASes that originate at least one. */
  readonly asCount: number;
  readonly added: number;
  readonly removed: number;
  /** The same prefix from another AS. */
  readonly changed: number;
  readonly samples: readonly RouteChange[];
  readonly multiOrigin: number;
  readonly multiOriginSamples: readonly MultiOrigin[];
}

export interface RouteChange {
  readonly prefix: string;
  /** Null: not announced. */
  readonly before: number | null;
  readonly after: number | null;
}

/** Losing more than this share at once is a file that was cut or came from a bad day, and no honest change. */
const mostLostShare = 0.5;

/** Fewer prefixes are somebody's own table. */
const fewestToJudge = 20;

export const losesTooMany = ({ before, after }: Pick<RoutingChanges, "before" | "after">): boolean =>
  before >= fewestToJudge && after < before * (1 - mostLostShare);

/** Throws TooFewRoutes unless as few prefixes as that are meant, or they are not so few. */
export function requireRoutesMeant(changes: RoutingChanges, keptPrefixes: number | null): void {
  if (!losesTooMany(changes) || keptPrefixes === changes.after) return;
  const { before, after } = changes;
  const count = (value: number) => value.toLocaleString("en-GB");
  const named = keptPrefixes === null ? "" : `, and not ${count(keptPrefixes)}`;
  throw new TooFewRoutes(
    `this leaves ${count(after)} of the ${count(before)} prefixes of the routing table${named}. Nothing was changed; if that is meant, say --yes-routes ${after}`,
  );
}

/** The routing table of a generation; null: it has none. */
export async function readRoutingTable(
  client: PoolClient,
  generation: number | null,
): Promise<RoutingTable | null> {
  const { rows } = await client.query<{ asNumber: string; ipv4: Buffer; ipv6: Buffer }>(
    `select as_number as "asNumber", ipv4, ipv6
     from registry_generation
     join routing_origin using (routing_table_id)
     where generation = $1`,
    [generation],
  );
  if (rows.length === 0) return null;
  const family = (version: Family) =>
    sorted(
      rows.flatMap((row) => ({
        asNumber: Number(row.asNumber),
        prefixes: unpackPrefixes(version, version === 4 ? row.ipv4 : row.ipv6),
      })),
    );
  return { ipv4: family(4), ipv6: family(6) };
}

function sorted(
  origins: readonly {
    readonly asNumber: number;
    readonly prefixes: Iterable<{ readonly firstBlock: number; readonly length: number }>;
  }[],
): OriginatedPrefixes {
  const firstBlocks: number[] = [];
  const lengths: number[] = [];
  const asNumbers: number[] = [];
  for (const { asNumber, prefixes } of origins) {
    for (const { firstBlock, length } of prefixes) {
      firstBlocks.push(firstBlock);
      lengths.push(length);
      asNumbers.push(asNumber);
    }
  }
  const order = Int32Array.from(lengths, (_, row) => row).sort(
    (a, b) =>
      (firstBlocks[a] as number) - (firstBlocks[b] as number) ||
      (lengths[a] as number) - (lengths[b] as number),
  );
  return {
    firstBlocks: Float64Array.from(order, (row) => firstBlocks[row] as number),
    lengths: Uint8Array.from(order, (row) => lengths[row] as number),
    asNumbers: Uint32Array.from(order, (row) => asNumbers[row] as number),
  };
}

const nothing: RoutingTable = { ipv4: emptyPrefixes, ipv6: emptyPrefixes };

/** The files' routes beside the table in force; null on either side: there is none. */
export function compareRoutes(
  routes: SettledRoutes | null,
  current: RoutingTable | null,
  limit: number,
): RoutingChanges {
  const wanted = routes?.table ?? nothing;
  const before = current ?? nothing;
  const counts = { added: 0, removed: 0, changed: 0 };
  const samples: RouteChange[] = [];
  const note = (kind: keyof typeof counts, change: () => RouteChange) => {
    counts[kind] += 1;
    if (samples.length < limit) samples.push(change());
  };
  compareFamily(4, before.ipv4, wanted.ipv4, note);
  compareFamily(6, before.ipv6, wanted.ipv6, note);
  const ipv4Prefixes = wanted.ipv4.lengths.length;
  const ipv6Prefixes = wanted.ipv6.lengths.length;
  return {
    before: before.ipv4.lengths.length + before.ipv6.lengths.length,
    after: ipv4Prefixes + ipv6Prefixes,
    ipv4Prefixes,
    ipv6Prefixes,
    asCount: new Set([...wanted.ipv4.asNumbers, ...wanted.ipv6.asNumbers]).size,
    ...counts,
    samples,
    multiOrigin: routes?.multiOrigin ?? 0,
    multiOriginSamples: routes?.multiOriginSamples.slice(0, limit) ?? [],
  };
}

/** Both are in the same order: one walk over the two. */
function compareFamily(
  family: Family,
  before: OriginatedPrefixes,
  after: OriginatedPrefixes,
  note: (kind: "added" | "removed" | "changed", change: () => RouteChange) => void,
): void {
  const asOf = (side: OriginatedPrefixes, at: number) => side.asNumbers[at] as number;
  const changeOf = (side: OriginatedPrefixes, at: number, asNumbers: Omit<RouteChange, "prefix">) => () => ({
    prefix: prefixText(family, side.firstBlocks[at] as number, side.lengths[at] as number),
    ...asNumbers,
  });
  for (let old = 0, now = 0; old < before.lengths.length || now < after.lengths.length; ) {
    const order = compareAt(before, old, after, now);
    if (order < 0) {
      note("removed", changeOf(before, old, { before: asOf(before, old), after: null }));
      old += 1;
    } else if (order > 0) {
      note("added", changeOf(after, now, { before: null, after: asOf(after, now) }));
      now += 1;
    } else {
      const both = { before: asOf(before, old), after: asOf(after, now) };
      if (both.before !== both.after) note("changed", changeOf(after, now, both));
      old += 1;
      now += 1;
    }
  }
}

/** Below 0: the earlier side's prefix comes first. A side that has ended comes last. */
function compareAt(before: OriginatedPrefixes, old: number, after: OriginatedPrefixes, now: number): number {
  if (old >= before.lengths.length) return 1;
  if (now >= after.lengths.length) return -1;
  return (
    (before.firstBlocks[old] as number) - (after.firstBlocks[now] as number) ||
    (before.lengths[old] as number) - (after.lengths[now] as number)
  );
}

export const changesRoutes = ({ added, removed, changed }: RoutingChanges): boolean =>
  added + removed + changed > 0;

/** Tables that are kept behind the one in force, for rollbacks: of weekly imports a month's. */
const keptTables = 5;

/** Gives the generation the files' routes; unchanged ones are those of the generation before. In the caller's transaction. */
export async function writeRoutes(
  client: PoolClient,
  at: { readonly generation: number; readonly before: number | null },
  routes: SettledRoutes | null,
  changes: RoutingChanges,
): Promise<void> {
  if (!changesRoutes(changes)) {
    await keepRoutes(client, at);
  } else if (routes !== null && changes.after > 0) {
    const { rows } = await client.query<{ id: number }>(
      "insert into routing_table default values returning routing_table_id as id",
    );
    const { id } = rows[0]!;
    await writeOrigins(client, id, routes.table);
    await writeSegments(client, id, 4, routes.table.ipv4);
    await writeSegments(client, id, 6, routes.table.ipv6);
    await client.query("update registry_generation set routing_table_id = $2 where generation = $1", [
      at.generation,
      id,
    ]);
  }
  await client.query(
    `delete from routing_table
     where routing_table_id not in (
       select routing_table_id from routing_table order by routing_table_id desc limit ${keptTables}
     ) and routing_table_id is distinct from (
       select routing_table_id from registry_generation where generation = $1
     )`,
    [at.generation],
  );
}

/** The routing table of the generation before, or none. */
export async function keepRoutes(
  client: PoolClient,
  { generation, before }: { readonly generation: number; readonly before: number | null },
): Promise<void> {
  await client.query(
    `update registry_generation set routing_table_id = b.routing_table_id
     from registry_generation b
     where registry_generation.generation = $1 and b.generation = $2`,
    [generation, before],
  );
}

/** ASes to one statement. */
const originsAtOnce = 4000;

async function writeOrigins(client: PoolClient, tableId: number, table: RoutingTable): Promise<void> {
  const rows = { 4: rowsByAs(table.ipv4), 6: rowsByAs(table.ipv6) };
  const asNumbers = [...new Set([...rows[4].keys(), ...rows[6].keys()])].sort((a, b) => a - b);
  for (let from = 0; from < asNumbers.length; from += originsAtOnce) {
    const some = asNumbers.slice(from, from + originsAtOnce);
    await client.query(
      `insert into routing_origin (routing_table_id, as_number, ipv4, ipv6)
       select $1, * from unnest($2::bigint[], $3::bytea[], $4::bytea[])`,
      [
        tableId,
        some,
        some.map((asNumber) => packPrefixes(4, table.ipv4, rows[4].get(asNumber) ?? [])),
        some.map((asNumber) => packPrefixes(6, table.ipv6, rows[6].get(asNumber) ?? [])),
      ],
    );
  }
}

function rowsByAs({ asNumbers }: OriginatedPrefixes): Map<number, number[]> {
  const rows = new Map<number, number[]>();
  for (const [row, asNumber] of asNumbers.entries()) {
    const known = rows.get(asNumber);
    if (known === undefined) rows.set(asNumber, [row]);
    else known.push(row);
  }
  return rows;
}

/** Segments to one row: a look-up of one address reads one row, 16 to 24 KB. */
const segmentsAtOnce = 2048;

/** Rows to one statement. */
const rowsAtOnce = 100;

async function writeSegments(
  client: PoolClient,
  tableId: number,
  family: Family,
  prefixes: OriginatedPrefixes,
): Promise<void> {
  const segments = segmentsOf(family, prefixes);
  const { length } = segments.starts;
  for (let from = 0; from < length; from += segmentsAtOnce * rowsAtOnce) {
    const starts: number[] = [];
    for (let at = from; at < Math.min(length, from + segmentsAtOnce * rowsAtOnce); at += segmentsAtOnce)
      starts.push(at);
    await client.query(
      `insert into routing_segments (routing_table_id, first_address, segments)
       select $1, * from unnest($2::inet[], $3::bytea[])`,
      [
        tableId,
        starts.map((at) => formatAddress(firstAddressOf(family, segments.starts[at] as number))),
        starts.map((at) => packSegments(family, segments, at, Math.min(length, at + segmentsAtOnce))),
      ],
    );
  }
}
