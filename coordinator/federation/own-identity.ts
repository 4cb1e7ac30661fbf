/** Tables coordinator_self and related_coordinator: who this coordinator is, and who is above it by its settings. */
import { randomUUID } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { inTransaction } from "../database/transaction.ts";
import { parentId } from "./owner.ts";
import { lockPeer } from "./peer-row.ts";
import { holdClaims } from "./relatives.ts";

/** Made at the first call, and the same for all coordinators that share the database. */
export async function ownId(client: Pool | PoolClient): Promise<string> {
  const before = await knownId(client);
  if (before !== null) return before;
  await client.query(
    "insert into coordinator_self (coordinator_id) values ($1) on conflict (only_one) do nothing",
    [randomUUID()],
  );
  return (await knownId(client))!;
}

/** Null: no coordinator has started here yet. */
export async function knownId(client: Pool | PoolClient): Promise<string | null> {
  const { rows } = await client.query<{ coordinator_id: string }>(
    "select coordinator_id from coordinator_self",
  );
  return rows[0]?.coordinator_id ?? null;
}

/** Whoever left: the frontier and the URLs of others are gone through once more (settle-claims). */
export async function settleAnew(client: PoolClient): Promise<void> {
  await client.query("update coordinator_self set settled_claims = ''");
}

/**
 * The parent as the settings have it; null: there is none any more. With another address the link begins anew; what
 * waits for the parent waits for the new one.
 */
export async function stateParent(
  pool: Pool,
  parent: { readonly url: string; readonly owns: readonly string[] } | null,
  now: Date,
): Promise<void> {
  await ownId(pool);
  if (parent === null) {
    await inTransaction(pool, async (client) => {
      await lockPeer(client, parentId);
      await holdClaims(client);
      const { rowCount } = await client.query("delete from related_coordinator where peer_id = $1", [
        parentId,
      ]);
      if (rowCount === 1) await settleAnew(client);
    });
    return;
  }
  await inTransaction(pool, async (client) => {
    await lockPeer(client, parentId);
    await holdClaims(client);
    await client.query("delete from related_coordinator where peer_id = $1 and name <> $2", [
      parentId,
      parent.url,
    ]);
    await client.query(
      `insert into related_coordinator (peer_id, name, created_at, created_by, claims)
       values ($1, $2, $3, 'settings', $4)
       on conflict (peer_id) do update set claims = excluded.claims, failing_since = null, failure = null`,
      [parentId, parent.url, now, parent.owns],
    );
  });
}
