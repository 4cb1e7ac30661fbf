/** Makes URLs due that somebody wants fetched again; they wait their turn like others. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import { inTransaction } from "../../database/transaction.ts";
import { lockHosts, releaseNamed } from "./admission-writes.ts";
import { isGivenUp, settleHosts } from "./lease-end-writes.ts";
import { urlsInHand } from "./open-lease-reads.ts";

/**
 * Makes those URLs due that are scheduled for later, held over their host's budget or given up (an unresolved host is
 * looked up again). Leased URLs, those a channel excludes and special-purpose addresses stay unchanged, and politeness
 * applies. Returns the number of due URLs.
 */
export async function fetchAgain(
  pool: Pool,
  keys: readonly Pick<UrlKey, "hostHash" | "urlHash">[],
  now: Date,
): Promise<number> {
  if (keys.length === 0) return 0;
  const hosts: readonly HostHash[] = [...new Set(keys.map(({ hostHash }) => hostHash))];
  return await inTransaction(pool, async (client) => {
    await lockHosts(client, hosts);
    await releaseNamed(client, keys, now);
    const { rows } = await client.query<{ urls: number }>(
      `with chosen as materialized (
         select u.host_hash, u.url_hash
         from (select distinct * from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)) given
         join frontier_url u using (host_hash, url_hash)
         join frontier_host h on h.host_hash = u.host_hash and h.state <> 'refused'
         where (u.state = 'due' or ${isGivenUp}) and u.url_hash <> all (${urlsInHand("u.host_hash")})
       ), due as (
         update frontier_url u
         set state = 'due', next_fetch_at = least(u.next_fetch_at, $3)
         from chosen
         where u.host_hash = chosen.host_hash and u.url_hash = chosen.url_hash
         returning u.host_hash
       ), looked_up as (
         update frontier_host h
         set resolve_at = least(h.resolve_at, $3)
         where h.host_hash in (select host_hash from chosen) and h.state = 'unresolvable'
       )
       select count(*)::int as urls from due`,
      [keys.map(({ hostHash }) => hostHash), keys.map(({ urlHash }) => urlHash), now],
    );
    await settleHosts(client, hosts);
    return rows[0]?.urls ?? 0;
  });
}
