/**
 * Table slice_self: which hosts a slice may write, as its own transactions see it. Whoever adds hosts or URLs holds a shared lock
 * of it until its transaction ends; whoever takes hosts away from the slice has the lock alone, for a moment (slices/move-writes.ts).
 * So no host is added where it does not belong any more, whatever a coordinator still believes of who owns it.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { bucketCount, bucketOf, hashesOf } from "../database/slices.ts";
import { prepared } from "../database/transaction.ts";

export interface SliceHold {
  readonly slice: number;
  /** It holds every host there is: nothing has to be asked. */
  readonly hasAll: boolean;
  /** Of all `bucketCount` of them, so many. */
  readonly buckets: number;
  has(hostHash: HostHash): boolean;
  /** The first and the last hash of each range that it holds. */
  hashes(): readonly (readonly [first: string, last: string])[];
}

const lockKeys = "hashtext('nearcrawl slice'), hashtext(current_schema())";

interface Row {
  readonly slice: number;
  readonly held: string;
}

const readHold = "select slice_number as slice, held::text as held from slice_self";

/** As it is until the transaction ends; before any host is locked. */
export async function holdSlice(client: PoolClient): Promise<SliceHold> {
  await prepared(client, `select pg_advisory_xact_lock_shared(${lockKeys})`, []);
  const { rows } = await prepared<Row>(client, readHold, []);
  return holdOf(rows[0]!);
}

/** Alone, for the rest of the transaction: nobody adds anything meanwhile. */
export async function takeSlice(client: PoolClient): Promise<SliceHold> {
  await client.query(`select pg_advisory_xact_lock(${lockKeys})`);
  const { rows } = await client.query<Row>(readHold);
  return holdOf(rows[0]!);
}

const everything = `{[0,${bucketCount})}`;

function holdOf({ slice, held }: Row): SliceHold {
  const ranges = [...held.matchAll(/\[(\d+),(\d+)\)/g)].map(([, first, end]) => ({
    first: Number(first),
    end: Number(end),
  }));
  const hashes = () => ranges.map(hashesOf);
  if (held === everything) return { slice, hasAll: true, buckets: bucketCount, has: () => true, hashes };
  return {
    slice,
    hasAll: false,
    buckets: ranges.reduce((sum, { first, end }) => sum + end - first, 0),
    has: (hostHash) => {
      const bucket = bucketOf(hostHash);
      return ranges.some(({ first, end }) => first <= bucket && bucket < end);
    },
    hashes,
  };
}
