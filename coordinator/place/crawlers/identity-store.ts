/** Tables crawler and crawler_key: tickets and addresses of identities, and keys issued, kept and replaced. */

import type { Pool } from "pg";
import type { FleetKeys } from "#core/access-types";
import { gatherArrivals } from "#core/coalesce";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import type { KeyScope } from "#protocol/identity";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import { askCrawlers, tellOfCrawlers } from "./control-store.ts";
import type { DayLimits, IssuedKey } from "./crawler.ts";
import {
  type DueRotation,
  judgeFolder,
  type KeyHolder,
  type KnownFolder,
  type Redeemed,
  type Redemption,
  type RedemptionFault,
  type SeenArrival,
  type TicketTrade,
  type TradedTicket,
} from "./identity.ts";
import { redeemInvitation } from "./invitation-store.ts";
import { askSigningKey } from "./signing-key-store.ts";

/** How long replaced keys stay valid by default. */
const defaultGraceHours = 24;

/** A crawler that has just joined confirms its key within this many seconds. */
const firstKeySeconds = 60;

/** SQL for the time at which crawler `c`'s replaced keys end. */
const graceEnd = (now: string, hours: string): string =>
  `${now}::timestamptz + make_interval(secs => 3600 * coalesce(c.rotation_grace_hours, ${hours}))`;

export type IdentityStore = ReturnType<typeof createIdentityStore>;

export function createIdentityStore(pool: Pool) {
  const arrivals = gatherArrivals(async (seen: readonly NotedArrival[]) => await noteArrivals(pool, seen));
  const trades = gatherArrivals(async (given: readonly TicketTrade[]) => await tradeIn(pool, given));
  const keyUses = gatherArrivals(async (used: readonly KeyUse[]) => await noteKeyUses(pool, used));
  return {
    noteArrival: async (arrival: SeenArrival, now: Date): Promise<void> =>
      await arrivals.ask({ ...arrival, now }),

    /** Accepts the ticket presented and issues the next one, or returns why the crawler's folder must be a copy. */
    tradeTicket: async (trade: TicketTrade): Promise<TradedTicket> => await trades.ask(trade),

    /**
     * Records that a key was used. If this is its first use, the key counts as stored by the crawler, and older keys end
     * after their grace period.
     */
    async noteKeyUse({ crawlerId, keyId }: Pick<KeyHolder, "crawlerId" | "keyId">, now: Date): Promise<void> {
      if (await keyUses.ask({ keyId, now })) await keepKey(pool, { crawlerId, keyId, now });
    },

    /** Records that the newest key is on the crawler's disk. Older keys end after a grace period. The invitation is used up. */
    keyKept: async (crawlerId: CrawlerId, now: Date): Promise<void> =>
      await keepKey(pool, { crawlerId, keyId: null, now }),

    /**
     * Issues an additional key. Unconfirmed earlier keys stay valid for the grace period, since one of them may be the
     * only one on the crawler's disk.
     */
    async issueKey(
      { crawlerId, keyHash, scopes }: { crawlerId: CrawlerId; keyHash: string; scopes: readonly KeyScope[] },
      now: Date,
    ): Promise<void> {
      await pool.query(
        `with forgotten as (
           delete from crawler_key
           where crawler_id = $1 and kept_at is null and (revoked_at is not null or expires_at <= $4)
         ),
         ending as (
           update crawler_key k
           set expires_at = least(k.expires_at, ${graceEnd("$4", "$5")})
           from crawler c
           where c.crawler_id = $1 and k.crawler_id = $1 and k.kept_at is null and k.revoked_at is null
             and (k.expires_at is null or k.expires_at > $4)
         )
         insert into crawler_key (crawler_id, key_hash, scopes, created_at) values ($1, $2, $3, $4)`,
        [crawlerId, keyHash, scopes, now, defaultGraceHours],
      );
    },

    /**
     * Returns those of the given crawlers whose newest kept key must be replaced (an operator asked, or it is older than
     * `maxAgeDays`) or that kept none. Skips those sent a key within `resendMs`.
     */
    dueRotations: async (
      crawlerIds: readonly CrawlerId[],
      rule: { readonly maxAgeDays: number; readonly resendMs: number; readonly now: Date },
    ): Promise<DueRotation[]> => await dueRotations(pool, crawlerIds, rule),

    /**
     * Returns the crawler of that name and identity if the database was restored after its last ticket, because the crawler
     * may then hold keys that the database has lost. Otherwise null.
     */
    async readmitted(
      name: string,
      publicKey: string,
    ): Promise<{
      readonly crawlerId: CrawlerId;
      readonly scopes: readonly KeyScope[];
      readonly revoked: boolean;
    } | null> {
      const { rows } = await pool.query<NonNullable<Awaited<ReturnType<IdentityStore["readmitted"]>>>>(
        `select c.crawler_id as "crawlerId", k.scopes, c.revoked_at is not null as revoked
         from crawler c
         cross join lateral (
           select scopes from crawler_key
           where crawler_id = c.crawler_id
           order by revoked_at is not null, key_id desc
           limit 1
         ) k
         where c.name = $1 and c.public_key = $2 and c.readmit`,
        [name, publicKey],
      );
      return rows[0] ?? null;
    },

    /** Returns those of the given crawlers that an operator has revoked. */
    async shutOut(crawlerIds: readonly CrawlerId[]): Promise<CrawlerId[]> {
      const { rows } = await pool.query<{ id: CrawlerId }>(
        "select crawler_id as id from crawler where crawler_id = any($1) and revoked_at is not null",
        [crawlerIds],
      );
      return rows.map(({ id }) => id);
    },

    /** Redeems an invitation and gives the crawler this key. */
    redeem: async (redemption: Redemption): Promise<Redeemed | { readonly refused: RedemptionFault }> =>
      await inTransaction(pool, async (client) => await redeemInvitation(client, redemption)),
  };
}

interface NotedArrival extends SeenArrival {
  readonly now: Date;
}

async function noteArrivals(pool: Pool, arrivals: readonly NotedArrival[]): Promise<readonly undefined[]> {
  const given = arrivals.map(({ lastEnd, signingKeys = false, ...one }) => {
    return { ...one, signingKeys, endAt: lastEnd?.at ?? null, words: lastEnd?.reason ?? null };
  });
  await pool.query(
    `update crawler c
     set expected_address = case when c.seen_address is distinct from given.address then c.seen_address else c.expected_address end,
         address_changed_at = case when c.seen_address <> given.address then given.at else c.address_changed_at end,
         seen_address = coalesce(given.address, c.seen_address),
         last_end_at = coalesce(given.end_at, c.last_end_at),
         last_words = coalesce(given.words, c.last_words),
         -- A crawler that was never here has signed nothing with its identity that anyone may still want to verify.
         signing_keys_since = case when given.signing_keys then coalesce(c.signing_keys_since,
           case when c.seen_address is null then '-infinity' else given.at end) end
     from unnest($1::int[], $2::inet[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::boolean[])
       as given (crawler_id, address, at, end_at, words, signing_keys)
     where c.crawler_id = given.crawler_id`,
    columnsOf(given, ["crawlerId", "address", "now", "endAt", "words", "signingKeys"]),
  );
  return arrivals.map(() => undefined);
}

interface KeyUse {
  readonly keyId: number;
  readonly now: Date;
}

/** Returns, for each use, whether it is the first sign that the crawler received the key. */
async function noteKeyUses(pool: Pool, used: readonly KeyUse[]): Promise<boolean[]> {
  const { rows } = await pool.query<{ key_id: number; is_new: boolean }>(
    `update crawler_key k
     set last_used_at = given.at
     from unnest($1::int[], $2::timestamptz[]) as given (key_id, at)
     where k.key_id = given.key_id
     returning k.key_id, k.kept_at is null as is_new`,
    columnsOf(used, ["keyId", "now"]),
  );
  const isNew = new Map(rows.map((row) => [row.key_id, row.is_new]));
  return used.map(({ keyId }) => isNew.get(keyId) ?? false);
}

/** Reads, judges and writes without holding a lock. If another trade came first, it judges again. */
async function tradeIn(pool: Pool, trades: readonly TicketTrade[]): Promise<TradedTicket[]> {
  const done = new Map<TicketTrade, TradedTicket>();
  for (let open = [...trades]; open.length > 0; open = open.filter((trade) => !done.has(trade))) {
    const folders = await foldersOf(pool, open);
    const changes = open.flatMap((trade) => {
      const { crawlerId, shown, next, instanceId, address, now } = trade;
      const { readmit, ...known } = folders.get(crawlerId)!;
      const verdict = judgeFolder(
        readmit ? unknownFolder : known,
        { ticket: shown, instanceId, address, at: now.toISOString() },
        next,
      );
      if ("copied" in verdict) done.set(trade, verdict);
      return "copied" in verdict ? [] : [{ trade, before: known.ticket, ...verdict }];
    });
    const { rows } = await pool.query<{ ticket_hash: string }>(
      `update crawler c
       set ticket_hash = given.ticket, previous_ticket_hash = given.before, arrivals = given.arrivals::jsonb, readmit = false
       from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[])
         as given (crawler_id, ticket, before, arrivals, judged)
       where c.crawler_id = given.crawler_id and c.ticket_hash is not distinct from given.judged
       returning c.ticket_hash`,
      [
        changes.map(({ trade }) => trade.crawlerId),
        changes.map(({ folder }) => folder.ticket),
        changes.map(({ folder }) => folder.ticketBefore),
        changes.map(({ folder }) => JSON.stringify(folder.arrivals)),
        changes.map(({ before }) => before),
      ],
    );
    // Every trade creates a new ticket.
    const made = new Set(rows.map((row) => row.ticket_hash));
    for (const { trade, movedFrom, alternates } of changes)
      if (made.has(trade.next)) done.set(trade, { movedFrom, alternates });
  }
  return trades.map((trade) => done.get(trade)!);
}

/** A folder known before the database was restored is treated as unknown (coordinator/run/journal). */
const unknownFolder: KnownFolder = { ticket: null, ticketBefore: null, arrivals: [] };

async function foldersOf(
  pool: Pool,
  trades: readonly TicketTrade[],
): Promise<ReadonlyMap<CrawlerId, KnownFolder & { readonly readmit: boolean }>> {
  const { rows } = await pool.query<
    KnownFolder & { readonly crawlerId: CrawlerId; readonly readmit: boolean }
  >(
    `select crawler_id as "crawlerId", ticket_hash as ticket, previous_ticket_hash as "ticketBefore", arrivals,
       readmit
     from crawler
     where crawler_id = any($1)`,
    [trades.map(({ crawlerId }) => crawlerId)],
  );
  return new Map(rows.map((row) => [row.crawlerId, row]));
}

/**
 * If `keyId` is null, marks the newest key as kept, unless it already is. A key that was used is on disk, while the one
 * confirmed earlier may have been another. So the kept key loses its end unless a newer one has been used since. Unused newer
 * keys stay valid and count as kept once they are used. A replacement requested since that key was made is still due.
 */
async function keepKey(
  pool: Pool,
  kept: { readonly crawlerId: CrawlerId; readonly keyId: number | null; readonly now: Date },
): Promise<void> {
  await pool.query(
    `with kept as (
       update crawler_key
       set kept_at = $3,
           expires_at = case when exists (
             select from crawler_key newer
             where newer.crawler_id = $1 and newer.key_id > crawler_key.key_id
               and newer.revoked_at is null and newer.last_used_at is not null
           ) then expires_at end
       where key_id = coalesce($2, (
           select max(key_id) from crawler_key
           where crawler_id = $1 and kept_at is null and revoked_at is null
             and key_id > coalesce((
               select max(key_id) from crawler_key
               where crawler_id = $1 and kept_at is not null and revoked_at is null
             ), 0)
         ))
       returning key_id, crawler_id, created_at
     ),
     replaced as (
       update crawler_key k
       set replaced_by = kept.key_id,
           expires_at = least(k.expires_at, ${graceEnd("$3", "$4")})
       from kept
       join crawler c using (crawler_id)
       where k.crawler_id = kept.crawler_id and k.key_id < kept.key_id and k.revoked_at is null
     ),
     doubted as (
       update crawler_key k
       set kept_at = null
       from kept
       where k.crawler_id = kept.crawler_id and k.key_id > kept.key_id and k.last_used_at is null
     ),
     used as (
       update invitation i
       set kept_at = $3
       from kept
       where i.crawler_id = kept.crawler_id and i.redeemed_at is not null and i.kept_at is null
     )
     update crawler c
     set rotation_asked_at = null, rotation_grace_hours = null
     from kept
     where c.crawler_id = kept.crawler_id and c.rotation_asked_at <= kept.created_at`,
    [kept.crawlerId, kept.keyId, kept.now, defaultGraceHours],
  );
}

async function dueRotations(
  pool: Pool,
  crawlerIds: readonly CrawlerId[],
  { maxAgeDays, resendMs, now }: { maxAgeDays: number; resendMs: number; now: Date },
): Promise<DueRotation[]> {
  const { rows } = await pool.query<DueRotation>(
    `select c.crawler_id as "crawlerId", k.scopes,
       coalesce(c.rotation_grace_hours, $5)::float8 as "graceHours"
     from crawler c
     cross join lateral (
       select scopes, created_at, kept_at
       from crawler_key
       where crawler_id = c.crawler_id and revoked_at is null
       order by kept_at is null, key_id desc
       limit 1
     ) k
     where c.crawler_id = any($1)
       and c.public_key is not null
       and c.revoked_at is null
       and (c.rotation_asked_at is not null
         or (k.kept_at is null and k.created_at <= $2::timestamptz - interval '${firstKeySeconds} s')
         or k.created_at < $2::timestamptz - make_interval(days => $3))
       and not exists (
         select from crawler_key sent
         where sent.crawler_id = c.crawler_id
           and sent.kept_at is null
           and sent.revoked_at is null
           and sent.created_at > $2::timestamptz - make_interval(secs => $4)
       )`,
    [crawlerIds, now, maxAgeDays, resendMs / 1000, defaultGraceHours],
  );
  return rows;
}

// Table crawler_key: a crawler's keys as listed for operators and its partner, without hashes.

const mostListed = 20;

/** Latest first. */
export async function keysOfCrawler(pool: Pool, name: string): Promise<IssuedKey[]> {
  const { rows } = await pool.query<IssuedKey>(
    `select k.key_id as "keyId", k.scopes, k.created_at as "issuedAt", k.kept_at as "keptAt",
       k.last_used_at as "lastUsedAt", k.expires_at as "expiresAt", k.revoked_at as "revokedAt"
     from crawler_key k
     join crawler c using (crawler_id)
     where c.name = $1
     order by k.key_id desc
     limit ${mostListed}`,
    [name],
  );
  return rows;
}

export interface ShownKey {
  readonly name: string;
  readonly keyHash: string;
}

/** Returns, for each, the crawler of that name that holds a valid key with this hash, or null. */
export async function crawlersOfKeys(pool: Pool, shown: readonly ShownKey[]): Promise<(KeyHolder | null)[]> {
  const { rows } = await pool.query<KeyHolder & { readonly place: number }>(
    `select given.ordinality::int as place, c.crawler_id as "crawlerId", c.revoked_at is not null as revoked,
       c.public_key as "publicKey", k.key_id as "keyId", k.scopes
     from unnest($1::text[], $2::text[]) with ordinality as given (name, key_hash, ordinality)
     join crawler c on c.name = given.name
     join crawler_key k on k.crawler_id = c.crawler_id and k.key_hash = given.key_hash
     where k.revoked_at is null
       and (k.expires_at is null or k.expires_at > now())`,
    columnsOf(shown, ["name", "keyHash"]),
  );
  const holders: (KeyHolder | null)[] = shown.map(() => null);
  for (const { place, ...holder } of rows) holders[place - 1] = holder;
  return holders;
}

/** SQL over a row of table crawler: whether its newest key only allows measurements. */
export const measuresOnly = `coalesce((
  select not 'crawl' = any(k.scopes)
  from crawler_key k
  where k.crawler_id = crawler.crawler_id and k.revoked_at is null
  order by k.key_id desc
  limit 1
), false)`;

/**
 * Registers a crawler with this key and no other. An existing one keeps its number but loses its identity, since the
 * new key's holder may have none.
 */
export async function registerCrawler(
  pool: Pool,
  crawler: Partial<DayLimits> & { readonly name: string; readonly keyHash: string },
): Promise<CrawlerId> {
  const { rows } = await pool.query<{ crawler_id: number }>(
    `with registered as (
       insert into crawler as c
         (name, pages_per_day, bytes_per_day, granted_pages_per_day, granted_bytes_per_day)
       values ($1, coalesce($3, 100000), coalesce($4, 10000000000), $3, $4)
       on conflict (name) do update
         set revoked_at = null, public_key = null, ticket_hash = null, previous_ticket_hash = null,
             arrivals = '[]', rotation_asked_at = null,
             pages_per_day = coalesce($3, c.pages_per_day),
             bytes_per_day = coalesce($4, c.bytes_per_day),
             granted_pages_per_day = coalesce($3, c.granted_pages_per_day),
             granted_bytes_per_day = coalesce($4, c.granted_bytes_per_day)
       returning crawler_id
     ),
     others as (
       update crawler_key k
       set revoked_at = now()
       from registered
       where k.crawler_id = registered.crawler_id and k.key_hash <> $2 and k.revoked_at is null
     )
     insert into crawler_key (crawler_id, key_hash, kept_at)
     select crawler_id, $2, now() from registered
     on conflict (crawler_id, key_hash) do update
       set revoked_at = null, expires_at = null, created_at = excluded.created_at, kept_at = excluded.kept_at
     returning crawler_id`,
    [crawler.name, crawler.keyHash, crawler.pagesPerDay ?? null, crawler.bytesPerDay ?? null],
  );
  return asCrawlerId(rows[0]!.crawler_id);
}

export function createFleetKeys(pool: Pool): FleetKeys {
  return {
    async revoke(name, now) {
      return await inTransaction(pool, async (client) => {
        const { rows } = await client.query<{ crawler_id: CrawlerId }>(
          "update crawler set revoked_at = coalesce(revoked_at, $2) where name = $1 returning crawler_id",
          [name, now],
        );
        await tellOfCrawlers(client, rows);
        return rows[0]?.crawler_id ?? null;
      });
    },

    askSigningKey: async (name, now) => await askSigningKey(pool, name, now),

    askRotation: async (name, { graceHours, now }) =>
      await askCrawlers(
        pool,
        `update crawler
         set rotation_asked_at = $2, rotation_grace_hours = $3
         where ($1::text is null or name = $1) and public_key is not null and revoked_at is null`,
        [name, now, graceHours],
      ),
  };
}
