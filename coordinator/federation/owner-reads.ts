/** Whose a URL or host is, for the answer to `who`: by the claims of now, and by what foreign_url remembers. */
import type { Pool } from "pg";
import { type Standing, stop } from "#core/explanation";
import { howMany, instantWords } from "#core/format";
import type { HostHash, UrlHash } from "#core/ids";
import { isoOrNull } from "../database/cached-read.ts";
import { claimOf, ownerOf as ownerBy, parentId } from "./claims.ts";
import { type KnownRelatives, readRelatives } from "./foreign-url-store.ts";

type Asked = Parameters<OwnerReads["ownerOf"]>[0];

export async function ownerOf(pool: Pool, asked: Asked): Promise<ForeignOwner | null> {
  const relatives = await readRelatives(pool);
  if (relatives === null) return null;
  const kept = await keptUrl(pool, asked);
  const owner = kept?.peerId ?? ownerBy(asked, relatives, "here");
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
  return child === undefined ? null : claimOf(child.claims, asked);
}

/** Of a host, any URL tells where its URLs went. */
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

// Of a URL or host that belongs to another coordinator: to whom, by what, and what became of it here.

export interface ForeignOwner {
  /** The coordinator that it goes to next. */
  readonly kind: "parent" | "child";
  readonly name: string;
  /** The child's claim that holds it (`.gr`); null: the parent's to say. */
  readonly claim: string | null;
  /** What this coordinator owns, where it has a parent. */
  readonly own: readonly string[];
  /** Of the URL here; null: it was not found here, or a host was asked for. */
  readonly url: ForeignUrlState | null;
}

interface ForeignUrlState {
  readonly waitsSince: string | null;
  readonly underWay: boolean;
  /** When the other side last said that it has it. */
  readonly toldAt: string | null;
}

export interface OwnerReads {
  /** Null: it is this coordinator's own. */
  ownerOf(asked: {
    readonly host: string;
    readonly hostHash: HostHash;
    readonly urlHash: UrlHash | null;
    readonly address: string | null;
  }): Promise<ForeignOwner | null>;
}

export function ownerLines(owner: ForeignOwner | null | undefined): Standing[] {
  if (!owner) return [];
  return [stop("other-coordinator", `${whoseWords(owner)} ${stateWords(owner)}`)];
}

function whoseWords({ kind, name, claim, own }: ForeignOwner): string {
  if (kind === "child")
    return `It belongs to coordinator ${name}${claim === null ? "" : ` (${claim})`}, below this one.`;
  const owned = own.slice(0, 5).join(", ");
  return `It belongs to another coordinator: this one owns ${owned}${own.length > 5 ? ` and ${howMany(own.length - 5, "other claim")}` : ""}, and its parent ${name} knows whose it is.`;
}

function stateWords({ kind, url }: ForeignOwner): string {
  const way = kind === "parent" ? "up" : "down";
  if (url === null) return `Once it is found here, it is sent ${way}.`;
  if (url.toldAt !== null) return `It was sent ${way} at ${instantWords(url.toldAt)}.`;
  if (url.underWay) return `It is being sent ${way}, and not acknowledged yet.`;
  return `It waits to be sent ${way}${url.waitsSince === null ? "" : `, since ${instantWords(url.waitsSince)}`}.`;
}
