/** Table crawler_key: the keys of one crawler for operators and its partner; the hashes stay here. */
import type { Pool } from "pg";
import type { IssuedKey } from "../fleet/fleet-ports.ts";

const mostListed = 20;

/** The latest first. */
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
