/** Table invitation: what operators have handed out, and what became of it. */
import type { Pool } from "pg";
import type { KeyScope } from "#protocol/identity";
import type { InvitationRecord, InvitationStore } from "./identity.ts";
import { joiningDays } from "./redeem-invitation.ts";

/** More are looked up by SQL. */
const mostListed = 500;

export function createInvitationStore(pool: Pool): InvitationStore {
  return {
    async create(invitation) {
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

    async list(now) {
      const { rows } = await pool.query<InvitationRow>(
        `select invitation_id, name, renews, scopes, pages_per_day, bytes_per_day::float8 as bytes_per_day,
           created_by, created_at, expires_at, redeemed_at, revoked_at,
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
      return rows.map(recordOf);
    },

    async revoke(which, now) {
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

interface InvitationRow {
  invitation_id: number;
  name: string;
  renews: boolean;
  scopes: KeyScope[];
  pages_per_day: number | null;
  bytes_per_day: number | null;
  created_by: string;
  created_at: Date;
  expires_at: Date;
  redeemed_at: Date | null;
  revoked_at: Date | null;
  state: InvitationRecord["state"];
}

function recordOf(row: InvitationRow): InvitationRecord {
  return {
    invitationId: row.invitation_id,
    name: row.name,
    renews: row.renews,
    scopes: row.scopes,
    pagesPerDay: row.pages_per_day,
    bytesPerDay: row.bytes_per_day,
    createdBy: row.created_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    redeemedAt: row.redeemed_at,
    revokedAt: row.revoked_at,
    state: row.state,
  };
}
