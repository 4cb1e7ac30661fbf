/** Tables release_key and release_key_rotation: whose signatures count on releases and statements about them. */
import type { Pool, PoolClient } from "pg";
import { tell } from "#db/schema-channel";
import { aheadOfClock } from "#protocol/release";
import { anyOf, type Envelope, formatEnvelope, type Role, readEnvelope } from "#protocol/release-envelope";
import {
  type FollowedRoles,
  followRoles,
  maxRotations,
  numberOfLink,
  type Roles,
} from "#protocol/release-roles";
import { inTransaction } from "../../database/transaction.ts";

/** The release keys: the initial ones, and the rotations and roots that follow. */
export type ReleaseKeyStore = ReturnType<typeof createReleaseKeyStore>;

export function createReleaseKeyStore(pool: Pool) {
  return {
    roles: async (): Promise<Roles> => (await releaseRoles(pool)).roles,

    /** The public keys that sign releases now, raw in base64url. */
    trusted: async (): Promise<readonly string[]> => (await releaseRoles(pool)).roles.releases.keys,

    /** What an invitation pins: the keys that may change the roles. */
    pinned: async (): Promise<Role> => (await releaseRoles(pool)).roles.root,

    rotations: async (): Promise<readonly Envelope[]> => await rotationsOf(pool),

    /**
     * Adds an initial key. Supervisors that joined before do not know it. Returns false and changes nothing when a root states
     * who signs.
     */
    async trustFirst(publicKey: string, now: Date): Promise<boolean> {
      if ((await releaseRoles(pool)).hasRoot) return false;
      await pool.query(
        "insert into release_key (public_key, added_at) values ($1, $2) on conflict (public_key) do nothing",
        [publicKey, now],
      );
      await tellOfReleases(pool);
      return true;
    },

    /** As `trustFirst`, but only while no key counts; otherwise returns false. */
    trustIfNone: async (publicKey: string, now: Date): Promise<boolean> =>
      await inTransaction(pool, (client) => trustIfNone(client, publicKey, now)),

    /** Adds a rotation or root. Returns null on success, otherwise why it is invalid. Running coordinators are notified. */
    rotate: async (signed: Envelope, now: Date): Promise<string | null> =>
      await inTransaction(pool, (client) => rotate(client, signed, now)),
  };
}

/** The initial keys, followed by rotations, roots and `more`. */
export async function releaseRoles(
  pool: Pick<Pool, "query">,
  more: readonly Envelope[] = [],
): Promise<FollowedRoles> {
  const { rows } = await pool.query<{ public_key: string }>(
    "select public_key from release_key order by added_at, public_key",
  );
  return followRoles(anyOf(rows.map((row) => row.public_key)), [...(await rotationsOf(pool)), ...more]);
}

/** Within a transaction, the notification is sent at the commit. */
export async function tellOfReleases(client: Pick<Pool, "query">): Promise<void> {
  await tell(client, "nearcrawl_releases", [""]);
}

/** It was verified when it was stored. */
export function storedEnvelope(text: string): Envelope {
  const read = readEnvelope(text);
  if ("refused" in read) throw new TypeError(`a stored envelope cannot be read: ${read.refused}`);
  return read;
}

/** Coordinators that start together on one database wait for each other. */
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
  const before = await releaseRoles(client);
  const kept = await rotationsOf(client);
  if (kept.length >= maxRotations) return `there have been ${maxRotations} rotations: reinvite the crawlers`;
  const sequence = numberOfLink(signed);
  const last = Math.max(0, ...kept.map(numberOfLink));
  if (sequence <= last)
    return `it has number ${sequence}, the last rotation or root had ${last}: sign it with a higher one`;
  const ahead = aheadOfClock("it", sequence, now);
  if (ahead !== null) return ahead;
  const after = await releaseRoles(client, [signed]);
  if (after.followed.length === before.followed.length) return notFollowed(signed, before);
  await client.query(
    "insert into release_key_rotation (sequence, signed, published_at) values ($1, $2, $3)",
    [sequence, formatEnvelope(signed), now],
  );
  await tellOfReleases(client);
  return null;
}

function notFollowed(signed: Envelope, { roles, hasRoot }: FollowedRoles): string {
  const { keys, threshold } = roles.root;
  const names = keys.join(", ") || "none does";
  return hasRoot
    ? `only a root changes who signs here, signed by ${threshold} of the root keys (${names}) and as many ` +
        `of its own as it takes; this is signed by ${signed.signatures.map(({ key }) => key).join(", ")}`
    : `it is not signed by a valid key (${names}), or by too few of the root keys that it names`;
}
