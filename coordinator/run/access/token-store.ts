/** Table operator_token: who may change the fleet over HTTP. Tokens are stored as SHA-256. */
import { timingSafeEqual } from "node:crypto";
import type { Pool } from "pg";
import type { OperatorToken, OperatorTokenStore } from "#core/access-types";

export function createOperatorTokenStore(pool: Pool): OperatorTokenStore {
  return {
    async create({ name, tokenHash, scopes, createdAt, expiresAt }) {
      const { rowCount } = await pool.query(
        `insert into operator_token (name, token_hash, scopes, created_at, expires_at)
         values ($1, $2, $3, $4, $5)
         on conflict (name) do nothing`,
        [name, tokenHash, scopes, createdAt, expiresAt],
      );
      return rowCount === 1;
    },

    async list() {
      const { rows } = await pool.query<OperatorToken>(`select ${columns} from operator_token order by name`);
      return rows;
    },

    async revoke(name, now) {
      const { rowCount } = await pool.query(
        "update operator_token set revoked_at = $2 where name = $1 and revoked_at is null",
        [name, now],
      );
      return rowCount === 1;
    },

    async use(tokenHash, now) {
      const { rows } = await pool.query<OperatorToken & { tokenHash: string }>(
        `update operator_token
         set last_used_at = $2
         where token_hash = $1 and revoked_at is null and (expires_at is null or expires_at > $2)
         returning ${columns}, token_hash as "tokenHash"`,
        [tokenHash, now],
      );
      if (!rows[0]) return null;
      const { tokenHash: kept, ...token } = rows[0];
      // The index lookup compares hashes, which reveals nothing; the final comparison takes constant time.
      return timingSafeEqual(Buffer.from(kept), Buffer.from(tokenHash)) ? token : null;
    },
  };
}

const columns = `name, scopes, created_at as "createdAt", expires_at as "expiresAt", last_used_at as "lastUsedAt",
  revoked_at as "revokedAt"`;
