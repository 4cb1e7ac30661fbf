/** Tables release_key and release_key_rotation: whose signatures on releases count. */
import type { Pool, PoolClient } from "pg";
import { notify } from "#db/schema-channel";
import {
  type Envelope,
  followRotations,
  formatEnvelope,
  maxRotations,
  readEnvelope,
  trustedKeys,
} from "#protocol/release-envelope";
import { inTransaction } from "../database/transaction.ts";

/** The release keys: those trusted first, and the rotations that carry on from them. */
export interface ReleaseKeyStore {
  /** The public keys whose signatures count now, raw in base64url: what an invitation pins. */
  trusted(): Promise<readonly string[]>;
  rotations(): Promise<readonly Envelope[]>;
  /** From now on the fleet's first key, or one more of them; docks that joined before know nothing of it. */
  trustFirst(publicKey: string, now: Date): Promise<void>;
  /** As `trustFirst`, while no key counts. False: one does, and nothing is changed. */
  trustIfNone(publicKey: string, now: Date): Promise<boolean>;
  /** Null: done; otherwise why the rotation cannot be followed. Running coordinators are told. */
  rotate(signed: Envelope, now: Date): Promise<string | null>;
}

export function createReleaseKeyStore(pool: Pool): ReleaseKeyStore {
  return {
    trusted: async () => await trustedReleaseKeys(pool),
    rotations: async () => await rotationsOf(pool),

    async trustFirst(publicKey, now) {
      await pool.query(
        "insert into release_key (public_key, added_at) values ($1, $2) on conflict (public_key) do nothing",
        [publicKey, now],
      );
      await tellOfReleases(pool);
    },

    trustIfNone: async (publicKey, now) =>
      await inTransaction(pool, (client) => trustIfNone(client, publicKey, now)),

    rotate: async (signed, now) => await inTransaction(pool, (client) => rotate(client, signed, now)),
  };
}

/** The keys trusted first, carried on by the rotations. */
export async function trustedReleaseKeys(pool: Pick<Pool, "query">): Promise<readonly string[]> {
  const { rows } = await pool.query<{ public_key: string }>(
    "select public_key from release_key order by added_at, public_key",
  );
  return trustedKeys(
    rows.map((row) => row.public_key),
    await rotationsOf(pool),
  );
}

/** Within a transaction it is heard of when that commits. */
export async function tellOfReleases(client: Pick<Pool, "query">): Promise<void> {
  await client.query(`select ${notify("nearcrawl_releases", "''")}`);
}

/** What was checked as it came in. */
export function storedEnvelope(text: string): Envelope {
  const read = readEnvelope(text);
  if ("refused" in read) throw new TypeError(`a stored envelope cannot be read: ${read.refused}`);
  return read;
}

/** Coordinators that start at once on one database wait for each other. */
async function trustIfNone(client: PoolClient, publicKey: string, now: Date): Promise<boolean> {
  await client.query("lock table release_key in exclusive mode");
  const { rowCount } = await client.query(
    "insert into release_key (public_key, added_at) select $1, $2 where not exists (select from release_key)",
    [publicKey, now],
  );
  if (rowCount === 1) await tellOfReleases(client);
  return rowCount === 1;
}

async function rotationsOf(pool: Pick<Pool, "query">): Promise<readonly Envelope[]> {
  const { rows } = await pool.query<{ signed: string }>(
    "select signed from release_key_rotation order by sequence limit $1",
    [maxRotations],
  );
  return rows.map(({ signed }) => storedEnvelope(signed));
}

async function rotate(client: PoolClient, signed: Envelope, now: Date): Promise<string | null> {
  await client.query("lock table release_key_rotation in exclusive mode");
  const keys = await trustedReleaseKeys(client);
  const before = await rotationsOf(client);
  if (before.length >= maxRotations)
    return `there have been ${maxRotations} rotations: reinvite the crawlers`;
  if (followRotations(keys, [signed]).followed.length === 0) {
    return `the rotation is not signed by a key that counts now (${keys.join(", ") || "none does"})`;
  }
  const { sequence } = JSON.parse(signed.body) as { readonly sequence: number };
  const { rows } = await client.query<{ last: string | null }>(
    "select max(sequence) as last from release_key_rotation",
  );
  const last = Number(rows[0]?.last ?? 0);
  if (sequence <= last)
    return `the rotation has number ${sequence}, the last one had ${last}: sign it with a higher one`;
  await client.query(
    "insert into release_key_rotation (sequence, signed, published_at) values ($1, $2, $3)",
    [sequence, formatEnvelope(signed), now],
  );
  await tellOfReleases(client);
  return null;
}
