/**
 * What a slice's outbox has for another one travels in shipments, one at a time for each pair, and counts once, whoever is ended in
 * the middle and however many carry it at the same time:
 *
 *   here    the rows of the next shipment are named, under a number that counts up
 *   there   they are written together with that number, unless it has arrived before
 *   here    they are deleted
 *
 * A slice that came back from a backup gives numbers that have arrived already: it goes on behind those.
 */
import type { Pool } from "pg";
import type { OpenSlice } from "../database/slices.ts";
import { inTransaction } from "../database/transaction.ts";

/** Of one shipment, in packed bytes; one row goes in any case. */
const mostBytes = 4_000_000;
const mostRows = 2000;

export interface Shipped {
  readonly shipments: number;
  readonly rows: number;
  readonly effects: number;
  readonly bytes: number;
}

export const nothingShipped: Shipped = { shipments: 0, rows: 0, effects: 0, bytes: 0 };

export const sumOfShipped = (a: Shipped, b: Shipped): Shipped => ({
  shipments: a.shipments + b.shipments,
  rows: a.rows + b.rows,
  effects: a.effects + b.effects,
  bytes: a.bytes + b.bytes,
});

/** What waits for that slice, all of it. */
export async function ship(from: OpenSlice, to: OpenSlice): Promise<Shipped> {
  let total = nothingShipped;
  while (true) {
    const shipment = await nextShipment(from, to);
    if (shipment === null) return total;
    total = sumOfShipped(total, await carry(from, to, shipment));
  }
}

/** Numbers of slices that rows wait for. */
export async function waitingFor(pool: Pool): Promise<number[]> {
  const { rows } = await pool.query<{ to_slice: number }>(
    "select distinct to_slice from link_outbox where to_slice is not null order by 1",
  );
  return rows.map(({ to_slice }) => to_slice);
}

/** What waited here until its hosts were held somewhere is looked at once more. */
export async function lookAgain(pool: Pool, slice: number): Promise<number> {
  const { rowCount } = await pool.query("update link_outbox set to_slice = null where to_slice = $1", [
    slice,
  ]);
  return rowCount ?? 0;
}

interface Shipment {
  readonly number: string;
  readonly rows: readonly string[];
}

async function nextShipment(from: OpenSlice, to: OpenSlice): Promise<Shipment | null> {
  const { rows: arrived } = await to.pool.query<{ number: string }>(
    "select shipment_number as number from slice_arrival where from_slice = $1",
    [from.number],
  );
  const behind = arrived[0]?.number ?? "0";
  return await inTransaction(from.pool, async (client) => {
    await client.query(
      "insert into slice_shipment (to_slice, shipment_number, outbox_numbers) values ($1, 0, '{}') on conflict (to_slice) do nothing",
      [to.number],
    );
    const { rows: known } = await client.query<{ number: string; rows: string[] }>(
      "select shipment_number as number, outbox_numbers as rows from slice_shipment where to_slice = $1 for update",
      [to.number],
    );
    const [open] = known;
    if (open!.rows.length > 0) return open!;
    const { rows: chosen } = await client.query<{ outbox_number: string }>(
      `select outbox_number
       from (
         select outbox_number, sum(length(packed)) over (order by outbox_number) - length(packed) as bytes_before
         from (
           select outbox_number, packed from link_outbox where to_slice = $1 order by outbox_number limit ${mostRows}
         ) oldest
       ) summed
       where bytes_before < ${mostBytes}
       order by outbox_number`,
      [to.number],
    );
    if (chosen.length === 0) return null;
    const { rows: begun } = await client.query<Shipment>(
      `update slice_shipment
       set shipment_number = greatest(shipment_number, $2::bigint) + 1, outbox_numbers = $3
       where to_slice = $1
       returning shipment_number as number, outbox_numbers as rows`,
      [to.number, behind, chosen.map((row) => row.outbox_number)],
    );
    return begun[0]!;
  });
}

async function carry(from: OpenSlice, to: OpenSlice, { number, rows: numbers }: Shipment): Promise<Shipped> {
  const { rows } = await from.pool.query<{
    crawler_id: number;
    effects: number;
    packed: Buffer;
    written_at: Date;
  }>(
    `select crawler_id, effects, packed, written_at
     from link_outbox where outbox_number = any($1::bigint[]) and to_slice = $2
     order by outbox_number`,
    [numbers, to.number],
  );
  // Fewer: somebody else has carried it to its end meanwhile.
  const isWhole = rows.length === numbers.length;
  if (isWhole)
    await inTransaction(to.pool, async (client) => {
      const { rowCount } = await client.query(
        `insert into slice_arrival as a (from_slice, shipment_number) values ($1, $2)
         on conflict (from_slice) do update set shipment_number = excluded.shipment_number
         where a.shipment_number < excluded.shipment_number`,
        [from.number, number],
      );
      if (rowCount === 0) return;
      await client.query(
        `insert into link_outbox (crawler_id, effects, packed, written_at)
         select * from unnest($1::int[], $2::int[], $3::bytea[], $4::timestamptz[])`,
        [
          rows.map((row) => row.crawler_id),
          rows.map((row) => row.effects),
          rows.map((row) => row.packed),
          rows.map((row) => row.written_at),
        ],
      );
    });
  const isOurs = await inTransaction(from.pool, async (client) => {
    const { rowCount } = await client.query(
      "update slice_shipment set outbox_numbers = '{}' where to_slice = $1 and shipment_number = $2 and outbox_numbers <> '{}'",
      [to.number, number],
    );
    if (rowCount === 0) return false;
    await client.query("delete from link_outbox where outbox_number = any($1::bigint[])", [numbers]);
    return true;
  });
  if (!isWhole || !isOurs) return nothingShipped;
  return {
    shipments: 1,
    rows: rows.length,
    effects: rows.reduce((sum, row) => sum + row.effects, 0),
    bytes: rows.reduce((sum, row) => sum + row.packed.length, 0),
  };
}
