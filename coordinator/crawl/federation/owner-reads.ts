/** Finds the owner of a URL or host for `who`, from the current claims and table foreign_url. */
import type { Pool } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { isoOrNull } from "../../database/cached-read.ts";
import { claimOf, ownerOf as ownerBy, parentId } from "../frontier/claims.ts";
import { type KnownRelatives, readRelatives } from "../frontier/foreign-url-store.ts";
import type { ForeignOwner, ForeignUrlState } from "./foreign-owner.ts";

interface Asked {
  readonly host: string;
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash | null;
}

/** Returns null if the URL or host belongs to this coordinator. */
export async function ownerOf(pool: Pool, asked: Asked): Promise<ForeignOwner | null> {
  const relatives = await readRelatives(pool);
  if (relatives === null) return null;
  const kept = await keptUrl(pool, asked);
  const owner = kept?.peerId ?? ownerBy(asked.host, relatives);
  if (owner === "here") return null;
  const names = await pool.query<{ name: string; claims: string[] }>(
    "select name, claims from related_coordinator where peer_id = $1",
    [owner],
  );
  const [row] = names.rows;
  if (!row) return null;
  const url = kept?.state ?? null;
  if (owner === parentId) return { kind: "parent", name: row.name, claim: null, own: row.claims, url };
  return { kind: "child", name: row.name, claim: claimHolding(relatives, owner, asked), own: [], url };
}

function claimHolding({ children }: KnownRelatives, peerId: number, asked: Asked): string | null {
  const child = children.find((one) => one.peerId === peerId);
  return child === undefined ? null : claimOf(child.claims, asked.host);
}

/** For a host, any of its URLs shows where its URLs were sent. */
async function keptUrl(
  pool: Pool,
  { hostHash, urlHash }: Asked,
): Promise<{ peerId: number; state: ForeignUrlState | null } | null> {
  const { rows } = await pool.query<{
    peer_id: number;
    waits_since: Date | null;
    under_way: boolean;
    sent_at: Date | null;
  }>(
    `select peer_id, waits_since, number is not null as under_way, sent_at
     from foreign_url
     where host_hash = $1 and ($2::bigint is null or url_hash = $2)
     limit 1`,
    [hostHash, urlHash],
  );
  const [row] = rows;
  if (!row) return null;
  const state = {
    waitsSince: isoOrNull(row.waits_since),
    underWay: row.under_way,
    toldAt: isoOrNull(row.sent_at),
  };
  return { peerId: row.peer_id, state: urlHash === null ? null : state };
}
