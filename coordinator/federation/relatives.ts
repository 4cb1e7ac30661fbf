/** Tables coordinator_self and related_coordinator, as routing needs them: small, and read within each transaction. */
import { LRUCache } from "lru-cache";
import type { Pool, PoolClient } from "pg";
import { type Claims, readClaims } from "./claims.ts";
import { parentId, type Relatives } from "./owner.ts";

/** Claims by their texts, which are read for every batch of results. */
const known = new LRUCache<string, Claims>({ max: 200 });

export interface KnownRelatives extends Relatives {
  /** Changes whenever somebody claims something else, comes or leaves. */
  readonly text: string;
  /** The parent and all children, those that have claimed nothing yet too. */
  readonly peers: ReadonlySet<number>;
}

const lockName = "nearcrawl-claims";

/**
 * As they are until the transaction ends: who places URLs by claims is done before they change, so that settle-claims
 * finds what it placed. Waits while somebody claims something else, and so comes before any host is locked.
 */
export async function holdRelatives(client: PoolClient): Promise<KnownRelatives | null> {
  await client.query(`select pg_advisory_xact_lock_shared(${lockKeys})`, [lockName]);
  return await readRelatives(client);
}

/** Claims are about to change, in this transaction; the relative's row is locked already. */
export async function holdClaims(client: PoolClient): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(${lockKeys})`, [lockName]);
}

const lockKeys = "hashtext($1), hashtext(current_schema())";

/** Null: this coordinator is alone, and everything is its own. */
export async function readRelatives(client: Pool | PoolClient): Promise<KnownRelatives | null> {
  const { rows } = await client.query<{ peer_id: number; name: string; claims: string[] }>(
    "select peer_id, name, claims from related_coordinator order by peer_id",
  );
  if (rows.length === 0) return null;
  const [parent] = rows.filter(({ peer_id }) => peer_id === parentId);
  const children = rows.flatMap(({ peer_id, name, claims: texts }) => {
    const claims = claimsOf(texts);
    return peer_id === parentId || claims === null ? [] : [{ peerId: peer_id, name, claims }];
  });
  const text = JSON.stringify(rows.map(({ peer_id, claims }) => [peer_id, claims]));
  const peers = new Set(rows.map(({ peer_id }) => peer_id));
  return { own: parent ? claimsOf(parent.claims) : null, children, text, peers };
}

/** Null: none, of a child that has not spoken yet. What is stored was checked. */
function claimsOf(texts: readonly string[]): Claims | null {
  const name = texts.join("\n");
  const before = known.get(name);
  if (before) return before;
  const claims = readClaims(texts);
  if (typeof claims === "string") return null;
  known.set(name, claims);
  return claims;
}
