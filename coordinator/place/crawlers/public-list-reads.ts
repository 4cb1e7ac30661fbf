import type { Pool } from "pg";
import { parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { oldKeySeconds } from "./signing-keys.ts";

export interface PublicKey {
  /** Ed25519, 32 bytes in base64url. */
  readonly publicKey: string;
  /** When it was published, and until when its signatures may be good; null: an identity, which has no end. */
  readonly from: Date | null;
  readonly until: Date | null;
}

// The fleet as sites may know it: the addresses that requests come from, and the keys that sign them. An address
// counts once a connection has come from it: what a crawler merely states may be anybody's.

/** A crawler that was connected so lately may have asked something that a webmaster now finds in a log. */
const recentDays = 7;

/** The fleet as sites may know it, so that they can tell whether a request is ours. */
export type FleetOutside = ReturnType<typeof createFleetOutside>;

export function createFleetOutside(pool: Pool) {
  return {
    /**
     * Public addresses that crawlers are or were lately seen to connect from, save those of crawlers whose partner wishes
     * otherwise; in their order.
     */
    async addresses(now: Date): Promise<string[]> {
      const { rows } = await pool.query<{ address: string }>(addressesSql, [now]);
      return rows.map((row) => row.address).filter(isPublic);
    },

    /** By which their requests are verified: of crawlers that are not shut out. */
    async publicKeys(now: Date): Promise<PublicKey[]> {
      const { rows } = await pool.query<PublicKey>(publicKeysSql, [now, oldKeySeconds]);
      return rows.map(({ publicKey, from, until }) => ({ publicKey, from, until }));
    },
  };
}

/**
 * The identity of a crawler that has no signing keys, and of one that has just begun to make them; and signing keys that
 * were announced under the identity that the crawler has now.
 */
const publicKeysSql = `
  select crawler_id, public_key as "publicKey", null::timestamptz as "from", null::timestamptz as until
  from crawler
  where public_key is not null and revoked_at is null
    and (signing_keys_since is null or signing_keys_since > $1::timestamptz - make_interval(secs => $2::float8))
  union all
  select c.crawler_id, k.public_key, k.announced_at, k.expires_at
  from crawler_signing_key k
  join crawler c using (crawler_id)
  where k.expires_at > $1 and k.identity_key = c.public_key and c.revoked_at is null
  order by crawler_id, "from" nulls first, "publicKey"`;

/**
 * Where a crawler's connection was last seen to come from; and what it states beside that (it may crawl by the other
 * family than it connects by), if it came from there of late.
 */
const addressesSql = `
  with known as (
    select seen_address, address, arrivals,
      case when address_changed_at > $1::timestamptz - interval '${recentDays} days' then expected_address end as before
    from crawler
    where seen_address is not null and revoked_at is null and not unlisted
      and (state <> 'offline' or last_seen_at > $1::timestamptz - interval '${recentDays} days')
  ), seen as (
    select seen_address as address from known
    union
    select address from known
    where address = before or exists (
      select from jsonb_to_recordset(arrivals) as arrival (at timestamptz, address inet)
      where arrival.address = known.address and arrival.at > $1::timestamptz - interval '${recentDays} days')
  )
  select host(address) as address from seen order by family(address), host(address)`;

function isPublic(text: string): boolean {
  const address = parseAddress(text);
  return address !== null && specialPurposeOf(address) === null;
}
