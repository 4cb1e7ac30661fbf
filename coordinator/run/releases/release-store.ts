/** Tables release, release_bundle and release_revocation: what was published, and to whom it is offered. */

import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Pool, PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import { tell } from "#db/schema-channel";
import {
  aheadOfClock,
  type FollowedRoles,
  followRoles,
  maxRotations,
  numberOfLink,
  type ReleaseManifest,
  type Roles,
  releaseManifest,
  verifyRevocations,
  verifyTimestamp,
} from "#protocol/release";
import {
  anyOf,
  type Envelope,
  formatEnvelope,
  openEnvelope,
  type Role,
  readEnvelope,
} from "#protocol/release-envelope";
import { ChannelListener } from "../../database/channel-listener.ts";
import { inTransaction } from "../../database/transaction.ts";
import type { ReleaseStage, StagedRelease, SupervisedCrawler } from "./staging.ts";

export type ReleaseStore = ReturnType<typeof createReleaseStore>;

export function createReleaseStore(pool: Pool) {
  return {
    /** Returns null if it was published, otherwise why not. The caller has verified the envelope and the bundle. */
    publish: async (release: PublishedRelease): Promise<string | null> =>
      await changing(pool, "release", (client) => publish(client, release)),

    async list(): Promise<readonly ReleaseEntry[]> {
      const role = (await releaseRoles(pool)).roles.releases;
      const { rows } = await pool.query<Omit<ReleaseEntry, "trusted"> & { readonly signed: string }>(
        `select r.version, r.sequence::float8 as sequence, r.digest, r.signed, r.expires_at as "expiresAt",
           r.published_at as "publishedAt", r.stage, r.percent, r.first_crawler_id as "firstCrawlerId",
           r.stage_since as "stageSince", r.stage_words as "stageWords", r.soak_minutes as "soakMinutes",
           r.digest = any(coalesce(
             (select digests from release_revocation order by sequence desc limit 1), '{}'
           )) as revoked
         from release r
         order by r.sequence desc`,
      );
      return rows.map(({ signed, ...entry }) => {
        const opened = openEnvelope(storedEnvelope(signed), {
          kind: "release",
          role,
          schema: releaseManifest,
        });
        return { ...entry, trusted: !("refused" in opened) };
      });
    },

    /** Returns false if there is no such release or its stage is not `from` any more. Notifies running coordinators. */
    setStage: async (version: string, to: StageChange, now: Date): Promise<boolean> =>
      await inTransaction(pool, async (client) => {
        const { rowCount } = await client.query(
          `update release
           set stage = $2, percent = $3, stage_words = $4, soak_minutes = $5, stage_since = $6,
               first_crawler_id = coalesce($7, first_crawler_id)
           where version = $1
             and ($8::text is null or (stage = $8 and stage_since is not distinct from $9::timestamptz))`,
          [
            ...[version, to.stage, to.percent, to.words, to.soakMinutes, now],
            ...[to.firstCrawlerId, to.from?.stage, to.from?.stageSince],
          ],
        );
        if (rowCount !== 1) return false;
        if (to.again)
          await client.query("delete from release_offer where version = $1 and state = 'returned'", [
            version,
          ]);
        await tellOfReleases(client);
        return true;
      }),

    /** The list in force; null if no release was ever revoked. */
    revocations: async (): Promise<Envelope | null> =>
      await signedOf(pool, "select signed from release_revocation order by sequence desc limit 1"),

    /** Returns null if the list was accepted, otherwise why not. From now on revoked releases are offered to nobody. */
    revoke: async (signed: Envelope, now: Date): Promise<string | null> =>
      await changing(pool, "release_revocation", (client) => revoke(client, signed, now)),

    /** The latest signed statement of which release is the newest, or null. */
    timestamp: async (): Promise<Envelope | null> =>
      await signedOf(pool, "select signed from release_timestamp"),

    async statedUntil(): Promise<Date | null> {
      const { rows } = await pool.query<{ expires_at: Date }>("select expires_at from release_timestamp");
      return rows[0]?.expires_at ?? null;
    },

    /** Replaces the statement with a newer one. Returns null if it was accepted, otherwise why not. */
    stateNewest: async (signed: Envelope, now: Date): Promise<string | null> =>
      await inTransaction(pool, async (client) => {
        await client.query("lock table release_timestamp in exclusive mode");
        const { rows } = await client.query<{ sequence: string }>("select sequence from release_timestamp");
        const role = (await releaseRoles(client)).roles.timestamp;
        const newestSequence = Number(rows[0]?.sequence ?? 0) + 1;
        const checked = verifyTimestamp(signed, { role, newestSequence, now });
        if ("refused" in checked) return checked.refused;
        const { sequence, expiresAt } = checked.timestamp;
        if (new Date(expiresAt) <= now) return `it expired at ${expiresAt}`;
        await client.query("delete from release_timestamp");
        await client.query(
          "insert into release_timestamp (sequence, signed, expires_at, published_at) values ($1, $2, $3, $4)",
          [sequence, formatEnvelope(signed), expiresAt, now],
        );
        return null;
      }),

    /** Calls back whenever a stage, a key or the list of revoked releases has changed (NOTIFY `nearcrawl_releases`). */
    onChange: async (changed: () => void): Promise<{ stop(): Promise<void> }> => {
      const listener = new ChannelListener(pool, "nearcrawl_releases", changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

interface PublishedRelease {
  readonly manifest: ReleaseManifest;
  readonly signed: Envelope;
  readonly bundle: Uint8Array;
  readonly now: Date;
}

/** Lets concurrent changes of a table wait for each other. Notifies running coordinators unless the change was refused. */
async function changing(
  pool: Pool,
  table: string,
  change: (client: PoolClient) => Promise<string | null>,
): Promise<string | null> {
  return await inTransaction(pool, async (client) => {
    await client.query(`lock table ${table} in exclusive mode`);
    const refused = await change(client);
    if (refused === null) await tellOfReleases(client);
    return refused;
  });
}

/** Within a transaction, the notification is sent when it commits. */
async function tellOfReleases(client: Pick<Pool, "query">): Promise<void> {
  await tell(client, "nearcrawl_releases", [""]);
}

async function signedOf(pool: Pool, sql: string, ...values: readonly string[]): Promise<Envelope | null> {
  const { rows } = await pool.query<{ signed: string }>(sql, [...values]);
  return rows[0] ? storedEnvelope(rows[0].signed) : null;
}

function storedEnvelope(text: string): Envelope {
  const read = readEnvelope(text);
  if ("refused" in read) throw new TypeError(`a stored envelope cannot be read: ${read.refused}`);
  return read;
}

async function publish(
  client: PoolClient,
  { manifest, signed, bundle, now }: PublishedRelease,
): Promise<string | null> {
  const { version, sequence, digest, expiresAt } = manifest;
  const { rows } = await client.query<{ version: string; sequence: string; digest: string }>(
    "select version, sequence, digest from release where version = $1 or sequence >= $2 order by sequence desc",
    [version, sequence],
  );
  const newest = rows[0];
  if (newest && Number(newest.sequence) >= sequence) {
    return `${version} has number ${sequence}, and ${newest.version} with ${newest.sequence} is published: sign it again`;
  }
  const same = rows.find((row) => row.version === version);
  if (same && same.digest !== digest) {
    return `${version} is published with another bundle (${same.digest}): choose another version`;
  }
  await client.query(
    "insert into release_bundle (digest, bundle) values ($1, $2) on conflict (digest) do nothing",
    [digest, bundle],
  );
  await client.query(
    `insert into release (version, sequence, digest, signed, expires_at, published_at)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (version) do update
       set sequence = excluded.sequence, signed = excluded.signed, expires_at = excluded.expires_at,
           published_at = excluded.published_at`,
    [version, sequence, digest, formatEnvelope(signed), expiresAt, now],
  );
  return null;
}

async function revoke(client: PoolClient, signed: Envelope, now: Date): Promise<string | null> {
  const { rows } = await client.query<{ sequence: string; digests: string[] }>(
    "select sequence, digests from release_revocation order by sequence desc limit 1",
  );
  const [before] = rows;
  const role = (await releaseRoles(client)).roles.revocations;
  const newestSequence = Number(before?.sequence ?? 0) + 1;
  const checked = verifyRevocations(signed, { role, newestSequence, now });
  if ("refused" in checked) return checked.refused;
  const { sequence, digests, reason } = checked.revocations;
  const missing = before?.digests.find((digest) => !digests.includes(digest));
  if (missing) return `the list lacks ${missing}, which was revoked before: a list names all of them`;
  await client.query(
    `insert into release_revocation (sequence, signed, digests, reason, published_at)
     values ($1, $2, $3, $4, $5)`,
    [sequence, formatEnvelope(signed), digests, reason, now],
  );
  await client.query(
    `update release
     set stage = 'none', percent = null, soak_minutes = null, stage_since = $2, stage_words = $3
     where digest = any($1)`,
    [digests.filter((digest) => !before?.digests.includes(digest)), now, `revoked: ${reason}`],
  );
  return null;
}

// The release files that the coordinator serves. Revoked or withdrawn releases are not served, even by digest.

const released = `
  r.digest = $1
  and r.stage <> 'none'
  and not r.digest = any(coalesce(
    (select digests from release_revocation order by sequence desc limit 1), '{}'
  ))`;

export type ReleaseFileStore = ReturnType<typeof createReleaseFileStore>;

export function createReleaseFileStore(pool: Pool) {
  return {
    /** Returns null if there is no such release, or if it was revoked or withdrawn. */
    async bundle(digest: string): Promise<Buffer | null> {
      const { rows } = await pool.query<{ bundle: Buffer }>(
        `select b.bundle
         from release_bundle b
         where b.digest = $1 and exists (select from release r where ${released})`,
        [digest],
      );
      return rows[0]?.bundle ?? null;
    },

    manifest: async (digest: string): Promise<Envelope | null> =>
      await signedOf(
        pool,
        `select r.signed from release r where ${released} order by r.sequence desc limit 1`,
        digest,
      ),
  };
}

// The file with which partners start, dist/nearcrawl-crawler.mjs, as built. It is read again when it changes on disk.

export interface ServedFile {
  readonly bytes: Buffer;
  readonly digest: string;
}

/** Paths relative to the built program, and to the sources. */
const builtPlaces = ["../../../nearcrawl-crawler.mjs", "../../../dist/nearcrawl-crawler.mjs"].map((place) =>
  fileURLToPath(new URL(place, import.meta.url)),
);

export function partnerProgram(places: readonly string[] = builtPlaces): () => Promise<ServedFile | null> {
  let kept: { readonly stamp: string; readonly file: ServedFile } | null = null;
  return async () => {
    for (const place of places) {
      const found = await stat(place).catch(() => null);
      if (!found?.isFile()) continue;
      const stamp = `${place} ${found.mtimeMs} ${found.size}`;
      if (kept?.stamp !== stamp) kept = { stamp, file: served(await readFile(place)) };
      return kept.file;
    }
    return null;
  };
}

export function served(bytes: Buffer): ServedFile {
  return { bytes, digest: createHash("sha256").update(bytes).digest("hex") };
}

export interface ReleaseEntry extends StagedRelease {
  readonly stageWords: string;
  readonly publishedAt: Date;
}

export interface StageChange {
  readonly stage: ReleaseStage;
  readonly percent: number | null;
  readonly words: string;
  /** `null` means that the stage moves only by hand from now on. */
  readonly soakMinutes: number | null;
  readonly firstCrawlerId?: CrawlerId;
  /** The change applies only while the release is at this stage. */
  readonly from?: { readonly stage: ReleaseStage; readonly stageSince: Date | null };
  /** Whether crawlers that returned from the release are offered it again. */
  readonly again?: boolean;
}

export interface SupervisedEntry extends SupervisedCrawler {
  readonly online: boolean;
  readonly runsVersion: string;
  readonly dockVersion: string;
  readonly policy: string;
}

// Tables release_key and release_key_rotation: whose signatures count on releases and on statements about them.

/** The release keys: the initial keys, and the rotations and roots that follow. */
export type ReleaseKeyStore = ReturnType<typeof createReleaseKeyStore>;

export function createReleaseKeyStore(pool: Pool) {
  return {
    roles: async (): Promise<Roles> => (await releaseRoles(pool)).roles,

    trusted: async (): Promise<readonly string[]> => (await releaseRoles(pool)).roles.releases.keys,

    /** The keys that may change who signs. Invitations pin them. */
    pinned: async (): Promise<Role> => (await releaseRoles(pool)).roles.root,

    rotations: async (): Promise<readonly Envelope[]> => await rotationsOf(pool),

    /**
     * Adds an initial key, which supervisors that joined earlier do not know. If a root already states who signs,
     * returns false and changes nothing.
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

    /** Like `trustFirst`, but only if there is no key yet; otherwise returns false. */
    trustIfNone: async (publicKey: string, now: Date): Promise<boolean> =>
      await inTransaction(pool, async (client) => {
        await client.query("lock table release_key in exclusive mode");
        const { rowCount } = await client.query(
          "insert into release_key (public_key, added_at) select $1, $2 where not exists (select from release_key)",
          [publicKey, now],
        );
        if (rowCount === 1) await tellOfReleases(client);
        return rowCount === 1;
      }),

    /** Adds a rotation or a root. Returns null if it was accepted, otherwise why it is invalid. */
    rotate: async (signed: Envelope, now: Date): Promise<string | null> =>
      await changing(pool, "release_key_rotation", (client) => rotate(client, signed, now)),
  };
}

/** Applies the initial keys, then rotations, then roots, then `more`. */
async function releaseRoles(
  pool: Pick<Pool, "query">,
  more: readonly Envelope[] = [],
): Promise<FollowedRoles> {
  const { rows } = await pool.query<{ public_key: string }>(
    "select public_key from release_key order by added_at, public_key",
  );
  return followRoles(anyOf(rows.map((row) => row.public_key)), [...(await rotationsOf(pool)), ...more]);
}

async function rotationsOf(pool: Pick<Pool, "query">): Promise<readonly Envelope[]> {
  const { rows } = await pool.query<{ signed: string }>(
    "select signed from release_key_rotation order by sequence limit $1",
    [maxRotations],
  );
  return rows.map(({ signed }) => storedEnvelope(signed));
}

async function rotate(client: PoolClient, signed: Envelope, now: Date): Promise<string | null> {
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
