import type { Pool } from "pg";
import { parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { oldKeySeconds } from "./signing-keys.ts";

export interface PublicKey {
  /** Ed25519 key, 32 bytes in base64url. */
  readonly publicKey: string;
  /** When it was published and until when its signatures may be valid. Null for an identity, which never ends. */
  readonly from: Date | null;
  readonly until: Date | null;
}

// The fleet as sites may see it: source addresses and signing keys. An address counts only once a connection has come from
// it, because a crawler may state the address of anybody.

/** A crawler connected this recently may appear in a webmaster's log. */
const recentDays = 7;

/** Lets sites verify whether a request is ours. */
export type FleetOutside = ReturnType<typeof createFleetOutside>;

export function createFleetOutside(pool: Pool) {
  return {
    /** Sorted public addresses from which crawlers connect or recently did, except where a partner opted out. */
    async addresses(now: Date): Promise<string[]> {
      const { rows } = await pool.query<{ address: string }>(addressesSql, [now]);
      return rows.map((row) => row.address).filter(isPublic);
    },

    /** Keys that verify requests, of crawlers that are not revoked. */
    async publicKeys(now: Date): Promise<PublicKey[]> {
      const { rows } = await pool.query<PublicKey>(publicKeysSql, [now, oldKeySeconds]);
      return rows.map(({ publicKey, from, until }) => ({ publicKey, from, until }));
    },
  };
}

/** Identities of crawlers without signing keys, or with only new ones, and signing keys announced under the current identity. */
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
 * The last observed source address, and the stated one if a connection recently came from it (a crawler may crawl by
 * the other address family).
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
