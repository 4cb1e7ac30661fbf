/** Table invitation: the invitations that operators issued, and their outcome. */
import type { Pool, PoolClient } from "pg";
import { asCrawlerId } from "#core/ids";
import type { KeyScope } from "#protocol/identity";
import type { InvitationRecord, Redeemed, Redemption, RedemptionFault } from "./identity.ts";

/** Maximum invitations listed. Older ones are available by SQL. */
const mostListed = 500;

export type InvitationStore = ReturnType<typeof createInvitationStore>;

export function createInvitationStore(pool: Pool) {
  return {
    /** Creates nothing if a crawler of that name exists (with `renews`: if none does). */
    async create(
      invitation: Pick<
        InvitationRecord,
        "name" | "renews" | "scopes" | "pagesPerDay" | "bytesPerDay" | "createdBy" | "createdAt" | "expiresAt"
      > & { readonly secretHash: string },
    ): Promise<number | "name-taken" | "no-such-crawler"> {
      const { rows } = await pool.query<{ invitation_id: number }>(
        `insert into invitation
           (secret_hash, name, renews, scopes, pages_per_day, bytes_per_day, created_by, created_at, expires_at)
         select $1, $2, $3, $4, $5, $6, $7, $8, $9
         where exists (select from crawler where name = $2) = $3
         returning invitation_id`,
        [
          invitation.secretHash,
          invitation.name,
          invitation.renews,
          invitation.scopes,
          invitation.pagesPerDay,
          invitation.bytesPerDay,
          invitation.createdBy,
          invitation.createdAt,
          invitation.expiresAt,
        ],
      );
      return rows[0]?.invitation_id ?? (invitation.renews ? "no-such-crawler" : "name-taken");
    },

    /** At most 500, the latest first. */
    async list(now: Date): Promise<InvitationRecord[]> {
      const { rows } = await pool.query<InvitationRecord>(
        `select invitation_id as "invitationId", name, renews, scopes, pages_per_day as "pagesPerDay",
           bytes_per_day::float8 as "bytesPerDay", created_by as "createdBy", created_at as "createdAt",
           expires_at as "expiresAt", redeemed_at as "redeemedAt", revoked_at as "revokedAt",
           case
             when kept_at is not null then 'joined'
             when revoked_at is not null then 'revoked'
             when redeemed_at <= $1::timestamptz - interval '${joiningDays} days' then 'expired'
             when redeemed_at is not null then 'joining'
             when expires_at <= $1 then 'expired'
             else 'open'
           end as state
         from invitation
         order by invitation_id desc
         limit ${mostListed}`,
        [now],
      );
      return rows;
    },

    /** Records the first download of its install command while the invitation can be used. */
    async noteDownload(invitationId: number, now: Date): Promise<void> {
      await pool.query(
        `update invitation set downloaded_at = $2
         where invitation_id = $1 and downloaded_at is null and redeemed_at is null and revoked_at is null
           and expires_at > $2`,
        [invitationId, now],
      );
    },

    /** Revokes by number, or all open ones of a name. Returns how many. One that is being redeemed keeps its crawler. */
    async revoke(
      which: { readonly invitationId: number } | { readonly name: string },
      now: Date,
    ): Promise<number> {
      const byNumber = "invitationId" in which;
      const { rowCount } = await pool.query(
        `update invitation
         set revoked_at = $2
         where ${byNumber ? "invitation_id" : "name"} = $1 and revoked_at is null and kept_at is null`,
        [byNumber ? which.invitationId : which.name, now],
      );
      return rowCount ?? 0;
    },
  };
}

// Turns an invitation into a crawler. Its row is locked, so that if two present the same secret, one is refused. The same
// identity may redeem it again until its crawler confirms its key, and at most until three days after the first redemption.
// This ends the key sent before.

/** Days after the first redemption in which a crawler that lost its key may redeem again. */
const joiningDays = 3;

const dayMs = 86_400_000;

interface RedeemedRow {
  invitation_id: number;
  name: string;
  renews: boolean;
  scopes: KeyScope[];
  pages_per_day: number | null;
  bytes_per_day: string | null;
  expires_at: Date;
  revoked_at: Date | null;
  redeemed_at: Date | null;
  public_key: string | null;
  crawler_id: number | null;
  kept_at: Date | null;
  /** Current public key of the crawler that the invitation became. Null if there is no such crawler or it has no identity. */
  bound_key: string | null;
  shut_out: boolean | null;
}

export async function redeemInvitation(
  client: PoolClient,
  redemption: Redemption,
): Promise<Redeemed | { readonly refused: RedemptionFault }> {
  const { rows } = await client.query<RedeemedRow>(
    `select i.invitation_id, i.name, i.renews, i.scopes, i.pages_per_day, i.bytes_per_day, i.expires_at, i.revoked_at,
       i.redeemed_at, i.public_key, i.crawler_id, i.kept_at, c.public_key as bound_key, c.revoked_at is not null as shut_out
     from invitation i
     left join crawler c using (crawler_id)
     where i.secret_hash = $1
     for update of i`,
    [redemption.secretHash],
  );
  const [row] = rows;
  const fault = await faultOf(client, row, redemption);
  if (fault !== null) return { refused: fault };
  const crawlerId = row!.crawler_id ?? (await bind(client, row!, redemption));
  if (crawlerId === null) return { refused: { type: row!.renews ? "gone" : "name-taken" } };
  await giveKey(client, crawlerId, row!.scopes, redemption);
  return { crawlerId: asCrawlerId(crawlerId), scopes: row!.scopes };
}

async function faultOf(
  client: PoolClient,
  row: RedeemedRow | undefined,
  { name, publicKey, now }: Redemption,
): Promise<RedemptionFault | null> {
  if (!row) return { type: "unknown" };
  if (row.name !== name) return { type: "other-name" };
  if (row.revoked_at !== null) return { type: "revoked" };
  if (row.kept_at !== null || (row.public_key !== null && row.public_key !== publicKey))
    return { type: "used" };
  if (row.public_key !== null) return faultOfCrawler(row, now);
  if (row.expires_at.getTime() <= now.getTime()) return { type: "expired", at: row.expires_at };
  const { rowCount } = await client.query("select from crawler where public_key = $1", [publicKey]);
  return rowCount === 0 ? null : { type: "identity-taken" };
}

/** Judges a second redemption by the same identity, by what has become of its crawler since. Returns null if it is allowed. */
function faultOfCrawler(row: RedeemedRow, now: Date): RedemptionFault | null {
  if (row.crawler_id === null) return { type: "gone" };
  if (row.shut_out) return { type: "shut-out" };
  if (row.bound_key !== row.public_key) return { type: "used" };
  const endsAt = new Date((row.redeemed_at?.getTime() ?? 0) + joiningDays * dayMs);
  return endsAt <= now ? { type: "expired", at: endsAt } : null;
}

/** Creates or renews the crawler of this identity. Returns null if the name is taken or there is none to renew. */
async function bind(
  client: PoolClient,
  row: RedeemedRow,
  { publicKey, now }: Redemption,
): Promise<number | null> {
  const { rows } = row.renews
    ? await client.query<{ crawler_id: number }>(renewal, [
        row.name,
        publicKey,
        row.pages_per_day,
        row.bytes_per_day,
        now,
      ])
    : await client.query<{ crawler_id: number }>(
        `insert into crawler (name, public_key, granted_pages_per_day, granted_bytes_per_day, pages_per_day, bytes_per_day)
         values ($1, $2, $3, $4, coalesce($3, 100000), coalesce($4, 10000000000))
         on conflict (name) do nothing
         returning crawler_id`,
        [row.name, publicKey, row.pages_per_day, row.bytes_per_day],
      );
  const crawlerId = rows[0]?.crawler_id ?? null;
  if (crawlerId === null) return null;
  await client.query(
    "update invitation set redeemed_at = $2, public_key = $3, crawler_id = $4 where invitation_id = $1",
    [row.invitation_id, now, publicKey, crawlerId],
  );
  await client.query("update crawler_key set revoked_at = $2 where crawler_id = $1 and revoked_at is null", [
    crawlerId,
    now,
  ]);
  return crawlerId;
}

const isTakenBack = "(draining_since is not null and drain_asked_by is distinct from 'trust')";

/**
 * A renewed crawler rejoins the fleet for whatever reason it was revoked, since its subnets may have gone to others. A
 * distrusted one gets no work until an operator trusts it again.
 */
const renewal = `
  update crawler
  set public_key = $2, ticket_hash = null, previous_ticket_hash = null, arrivals = '[]', revoked_at = null,
      granted_pages_per_day = coalesce($3, granted_pages_per_day),
      granted_bytes_per_day = coalesce($4, granted_bytes_per_day),
      rotation_asked_at = null, rotation_grace_hours = null,
      joining_since = case when ${isTakenBack} then coalesce(joining_since, $5) else joining_since end,
      state = case when ${isTakenBack} and state = 'draining' then 'online' else state end,
      draining_since = case when ${isTakenBack} then null else draining_since end,
      drain_asked_by = case when ${isTakenBack} then null else drain_asked_by end
  where name = $1
  returning crawler_id`;

async function giveKey(
  client: PoolClient,
  crawlerId: number,
  scopes: readonly KeyScope[],
  { keyHash, now }: Redemption,
): Promise<void> {
  await client.query(
    "update crawler_key set revoked_at = $2 where crawler_id = $1 and kept_at is null and revoked_at is null",
    [crawlerId, now],
  );
  await client.query(
    "insert into crawler_key (crawler_id, key_hash, scopes, created_at) values ($1, $2, $3, $4)",
    [crawlerId, keyHash, scopes, now],
  );
}
