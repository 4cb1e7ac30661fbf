/** Table crawler_signing_key: the keys with which crawlers sign requests, and until when each is published. */
import type { Pool } from "pg";
import type { AskedSigningKey } from "#core/access-types";
import type { CrawlerId } from "#core/ids";
import { inTransaction } from "../../database/transaction.ts";
import { askCrawlers } from "./control-store.ts";

export interface SigningKeyRule {
  /** Age at which a new key is requested. */
  readonly maxAgeDays: number;
}

interface PublishedSigningKey {
  readonly publicKey: string;
  readonly announcedAt: Date;
  readonly expiresAt: Date;
}

interface NewSigningKey {
  readonly crawlerId: CrawlerId;
  readonly identity: string;
  readonly publicKey: string;
  readonly now: Date;
  readonly expiresAt: Date;
  /** Time at which the crawler's other keys end. */
  readonly othersEndAt: Date;
  readonly mostPublished: number;
}

type PublishedOrNot =
  | { readonly type: "published"; readonly key: PublishedSigningKey; readonly isNew: boolean }
  | { readonly type: "taken" }
  | { readonly type: "too-many"; readonly nextEndsAt: Date };

export type SigningKeyStore = ReturnType<typeof createSigningKeyStore>;

export function createSigningKeyStore(pool: Pool) {
  return {
    /** Returns null if the crawler is revoked or has no identity. */
    async identityOf(crawlerId: CrawlerId): Promise<string | null> {
      const { rows } = await pool.query<{ public_key: string | null }>(
        "select public_key from crawler where crawler_id = $1 and revoked_at is null",
        [crawlerId],
      );
      return rows[0]?.public_key ?? null;
    },

    /** Publishes a key. One that is already published stays unchanged. */
    publish: async (key: NewSigningKey): Promise<PublishedOrNot> =>
      await inTransaction(pool, async (client) => {
        const { crawlerId, identity, publicKey, now, expiresAt, othersEndAt, mostPublished } = key;
        // Serialises the announcements of one crawler.
        await client.query("select from crawler where crawler_id = $1 for update", [crawlerId]);
        const known = await client.query<PublishedSigningKey & { isOwn: boolean }>(
          `select ${keyColumns}, crawler_id = $2 and identity_key = $3 as "isOwn"
           from crawler_signing_key
           where public_key = $1`,
          [publicKey, crawlerId, identity],
        );
        const [before] = known.rows;
        if (before) return before.isOwn ? published(before, false) : { type: "taken" };
        const others = await client.query<{ count: number; nextEndsAt: Date | null }>(
          `select count(*)::int as count, min(expires_at) as "nextEndsAt"
           from crawler_signing_key
           where crawler_id = $1 and identity_key = $2 and expires_at > $3`,
          [crawlerId, identity, now],
        );
        const { count, nextEndsAt } = others.rows[0]!;
        if (count >= mostPublished && nextEndsAt !== null) return { type: "too-many", nextEndsAt };
        const made = await client.query<PublishedSigningKey>(
          `insert into crawler_signing_key (public_key, crawler_id, identity_key, announced_at, expires_at)
           select $1, $2, $3, $4, $5
           where not exists (select from crawler where public_key = $1)
           on conflict do nothing
           returning ${keyColumns}`,
          [publicKey, crawlerId, identity, now, expiresAt],
        );
        const [row] = made.rows;
        if (!row) return { type: "taken" };
        await client.query(
          `update crawler_signing_key
           set expires_at = $3
           where crawler_id = $1 and public_key <> $2 and expires_at > $3`,
          [crawlerId, publicKey, othersEndAt],
        );
        return published(row, true);
      }),

    /** Returns the given crawlers that must make a new key, because their newest is old or an operator has asked since. */
    async dueRenewals(
      crawlerIds: readonly CrawlerId[],
      { maxAgeDays, now }: SigningKeyRule & { readonly now: Date },
    ): Promise<{ readonly crawlerId: CrawlerId; readonly isAsked: boolean }[]> {
      const { rows } = await pool.query<{ crawlerId: CrawlerId; isAsked: boolean }>(
        `select c.crawler_id as "crawlerId", coalesce(c.signing_key_asked_at > k.announced_at, false) as "isAsked"
         from crawler c
         cross join lateral (
           select announced_at from crawler_signing_key
           where crawler_id = c.crawler_id and identity_key = c.public_key and expires_at > $2
           order by announced_at desc
           limit 1
         ) k
         where c.crawler_id = any($1) and c.signing_keys_since is not null and c.revoked_at is null
           and (c.signing_key_asked_at > k.announced_at
             or k.announced_at <= $2::timestamptz - make_interval(secs => 86400 * $3::float8))`,
        [crawlerIds, now, maxAgeDays],
      );
      return rows;
    },
  };
}

const keyColumns = `public_key as "publicKey", announced_at as "announcedAt", expires_at as "expiresAt"`;

const published = (
  { publicKey, announcedAt, expiresAt }: PublishedSigningKey,
  isNew: boolean,
): PublishedOrNot => ({ type: "published", key: { publicKey, announcedAt, expiresAt }, isNew });

/** Requests new signing keys and notifies coordinators. If `name` is null, every crawler that makes them is asked. */
export async function askSigningKey(pool: Pool, name: string | null, now: Date): Promise<AskedSigningKey[]> {
  return await askCrawlers(
    pool,
    `update crawler
     set signing_key_asked_at = $2
     where ($1::text is null or name = $1) and signing_keys_since is not null and revoked_at is null`,
    [name, now],
  );
}
