/**
 * Slices of the web, as stores see them: each has the tables of its hosts (db/table-sets.ts), behind a pool of its own. A host
 * lies in the slice that owns its bucket, which is the first 12 bits of its hash, from the smallest hash on: ranges of buckets
 * are ranges of hashes, by which tables have indexes.
 *
 *   bucket         0                 1                 …  4095
 *   hashes from   -2^63             -2^63 + 2^52           2^63 - 2^52
 */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";

export const bucketCount = 4096;

const bucketBits = 52n;
const smallestHash = -(2n ** 63n);

export const bucketOf = (hostHash: HostHash): number =>
  Number((BigInt(hostHash) - smallestHash) >> bucketBits);

/** From `first` on, before `end`. */
export interface Buckets {
  readonly first: number;
  readonly end: number;
}

/** The smallest and the largest hash of the buckets, as Postgres' bigint reads them. */
export function hashesOf({ first, end }: Buckets): readonly [first: string, last: string] {
  return [
    String(smallestHash + (BigInt(first) << bucketBits)),
    String(smallestHash + (BigInt(end) << bucketBits) - 1n),
  ];
}

export interface OpenSlice {
  readonly number: number;
  readonly pool: Pool;
}

/** Those that there are at the moment; the list changes while a coordinator runs. */
export interface Slices {
  /** Of the tables that all slices share; slice 0 lies beside them. */
  readonly shared: Pool;
  /** By number, slice 0 first; never empty. */
  readonly open: readonly OpenSlice[];
  /** Numbers of those whose server does not answer: what is read of all of them is partial. */
  readonly down: readonly number[];
  ofHost(hostHash: HostHash): OpenSlice;
  /** That gave a lease, a change or a check its number; slice 0 where there is none any more. */
  ofNumber(number: string): OpenSlice;
}

/** One slice, which has everything. */
export function oneSlice(pool: Pool): Slices {
  const slice = { number: 0, pool };
  return { shared: pool, open: [slice], down: [], ofHost: () => slice, ofNumber: () => slice };
}

/** A pool alone stands for one slice that has everything. */
export const slicesOf = (given: Pool | Slices): Slices => ("ofHost" in given ? given : oneSlice(given));

/** All but slice 0, which lies beside the shared tables: what is written there is not of the same transaction. */
export const apartOf = ({ open }: Slices): readonly OpenSlice[] => open.filter(({ number }) => number !== 0);

/** Who owns which buckets. */
export class BucketOwners {
  readonly #owners = new Int16Array(bucketCount).fill(-1);

  /** Throws where ranges overlap, or leave a bucket without an owner. */
  constructor(ranges: readonly (Buckets & { readonly slice: number })[]) {
    for (const { first, end, slice } of ranges)
      for (let bucket = first; bucket < end; bucket++) {
        if (this.#owners[bucket] !== -1)
          throw new RangeError(
            `bucket ${bucket} is owned by slice ${this.#owners[bucket]} and by slice ${slice}`,
          );
        this.#owners[bucket] = slice;
      }
    const lacking = this.#owners.indexOf(-1);
    if (lacking >= 0) throw new RangeError(`bucket ${lacking} has no owner`);
  }

  ofHost(hostHash: HostHash): number {
    return this.#owners[bucketOf(hostHash)]!;
  }

  ofBucket(bucket: number): number {
    return this.#owners[bucket]!;
  }
}

/** By the slice that each is of; in the order of the slices. */
export function bySlice<T>(
  values: Iterable<T>,
  sliceOf: (value: T) => OpenSlice,
): { readonly slice: OpenSlice; readonly values: T[] }[] {
  const groups = new Map<number, { readonly slice: OpenSlice; readonly values: T[] }>();
  for (const value of values) {
    const slice = sliceOf(value);
    const group = groups.get(slice.number);
    if (group === undefined) groups.set(slice.number, { slice, values: [value] });
    else group.values.push(value);
  }
  return [...groups.values()].sort((a, b) => a.slice.number - b.slice.number);
}

/** Those whose servers answer. */
export const upOf = ({ open, down }: Slices): readonly OpenSlice[] =>
  down.length === 0 ? open : open.filter(({ number }) => !down.includes(number));

/** Asks all slices whose servers answer, side by side; the answers in their order. */
export async function ofAll<T>(slices: Slices, ask: (slice: OpenSlice) => Promise<T>): Promise<T[]> {
  const asked = upOf(slices);
  if (asked.length === 1) return [await ask(asked[0]!)];
  return await Promise.all(asked.map(ask));
}
