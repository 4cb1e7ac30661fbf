/** Who each crawler is, for operators: its identity and key, where it was seen, why it was away, its last words. */
import type { Pool } from "pg";
import type { KeyScope } from "#protocol/identity";
import type { FleetIdentity } from "./fleet-ports.ts";

/** Of a crawler that was never connected. */
export const noIdentity: FleetIdentity = {
  publicKey: null,
  keySince: null,
  scopes: [],
  seenAddress: null,
  addressBefore: null,
  addressChangedAt: null,
  lastAway: null,
  lastEnd: null,
  copiedAt: null,
  contact: null,
  isListed: true,
};

/** By the crawler's number. */
export async function fleetIdentities(
  pool: Pool,
  now: Date,
  crawlerIds: readonly number[],
): Promise<ReadonlyMap<number, FleetIdentity>> {
  const { rows } = await pool.query<IdentityRow>(
    `select c.crawler_id, c.public_key, k.created_at as key_since, coalesce(k.scopes, '{}') as scopes,
       host(c.seen_address) as seen_address, host(c.expected_address) as address_before, c.address_changed_at,
       c.was_offline_since, c.was_offline_reason, c.last_end_at, c.last_words, i.copied_at,
       c.partner_contact, not c.unlisted as is_listed
     from crawler c
     left join lateral (
       select created_at, scopes
       from crawler_key
       where crawler_id = c.crawler_id and revoked_at is null and kept_at is not null
         and (expires_at is null or expires_at > $1)
       order by key_id desc
       limit 1
     ) k on true
     left join (
       select i.crawler_id, max(i.last_at) as copied_at
       from incident i
       left join (
         select crawler_id, max(redeemed_at) as renewed_at from invitation group by crawler_id
       ) r using (crawler_id)
       where i.kind = 'copied-folder' and i.hour > $1::timestamptz - interval '7 days'
         -- A new identity has put an end to it.
         and i.last_at > coalesce(r.renewed_at, '-infinity')
       group by i.crawler_id
     ) i on i.crawler_id = c.crawler_id
     where c.crawler_id = any($2)`,
    [now, crawlerIds],
  );
  return new Map(rows.map((row) => [row.crawler_id, identityOf(row)]));
}

interface IdentityRow {
  crawler_id: number;
  public_key: string | null;
  key_since: Date | null;
  scopes: KeyScope[];
  seen_address: string | null;
  address_before: string | null;
  address_changed_at: Date | null;
  was_offline_since: Date | null;
  was_offline_reason: string | null;
  last_end_at: Date | null;
  last_words: string | null;
  copied_at: Date | null;
  partner_contact: string | null;
  is_listed: boolean;
}

function identityOf(row: IdentityRow): FleetIdentity {
  const { was_offline_since: since, was_offline_reason: reason, last_end_at: at, last_words: words } = row;
  return {
    publicKey: row.public_key,
    keySince: row.key_since,
    scopes: row.scopes,
    seenAddress: row.seen_address,
    addressBefore: row.address_before,
    addressChangedAt: row.address_changed_at,
    lastAway: since === null || reason === null ? null : { since, reason },
    lastEnd: at === null || words === null ? null : { at, reason: words },
    copiedAt: row.copied_at,
    contact: row.partner_contact,
    isListed: row.is_listed,
  };
}
