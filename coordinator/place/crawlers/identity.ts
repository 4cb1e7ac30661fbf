/** Identities and keys of crawlers, and the invitations through which crawlers get them. */
import type { CrawlerId } from "#core/ids";
import type { KeyScope } from "#protocol/identity";
import type { Budget } from "./crawler.ts";

/** The crawler that a key belongs to. */
export interface KeyHolder {
  readonly crawlerId: CrawlerId;
  /** True if an operator has revoked the crawler, whatever key it presents. */
  readonly revoked: boolean;
  readonly keyId: number;
  readonly scopes: readonly KeyScope[];
  /** Ed25519 key, 32 bytes in base64url. Null if no identity is required. */
  readonly publicKey: string | null;
}

/** Where a crawler connected from, and what its former process reported at its end. */
export interface SeenArrival {
  readonly crawlerId: CrawlerId;
  readonly address: string | null;
  readonly lastEnd: { readonly at: string; readonly reason: string } | null;
  /** True if the crawler makes separate signing keys, so that its identity signs no requests. */
  readonly signingKeys?: boolean | undefined;
}

/** Tickets are passed as SHA-256 in hex. */
export interface TicketTrade {
  readonly crawlerId: CrawlerId;
  readonly shown: string | null;
  readonly next: string;
  readonly instanceId: string;
  readonly address: string | null;
  readonly now: Date;
}

export type TradedTicket =
  | { readonly copied: string }
  | { readonly movedFrom: string | null; readonly alternates: boolean };

export interface DueRotation {
  readonly crawlerId: CrawlerId;
  readonly scopes: readonly KeyScope[];
  readonly graceHours: number;
}

export interface Redemption {
  readonly secretHash: string;
  readonly name: string;
  readonly publicKey: string;
  /** Hash of the crawler's new key. */
  readonly keyHash: string;
  readonly now: Date;
}

export interface Redeemed {
  readonly crawlerId: CrawlerId;
  readonly scopes: readonly KeyScope[];
}

export type RedemptionFault =
  | {
      readonly type:
        | "unknown"
        | "other-name"
        | "revoked"
        | "shut-out"
        | "used"
        | "name-taken"
        | "identity-taken"
        | "gone";
    }
  | { readonly type: "expired"; readonly at: Date };

/** An invitation as operators see it. Its secret is not stored. */
export interface InvitationRecord extends Budget {
  readonly invitationId: number;
  readonly name: string;
  /** True if it gives an existing crawler a new identity. */
  readonly renews: boolean;
  readonly scopes: readonly KeyScope[];
  readonly createdBy: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly redeemedAt: Date | null;
  readonly revokedAt: Date | null;
  /**
   * open: usable. joining: redeemed, but the crawler has not confirmed its key. joined: used up. expired: not redeemed in
   * time, or joining for three days (nearcrawl fleet reinvite).
   */
  readonly state: "open" | "joining" | "joined" | "expired" | "revoked";
}

// Detects a copied crawler folder by what two machines with one identity cannot both present.
// - Tickets: every welcome carries a new ticket, to be presented at the next arrival. The last ticket is valid, and so is the
//   one before it until the last has been presented (the crawler may have ended before storing it). Once two machines have
//   alternated, one of them presents an older ticket.
// - Instances: a process that returns after another process of the same folder was admitted shows that two are running, even
//   if both share the files.
//
// Addresses prove nothing, since machines move and lines change. Alternating addresses are reported, not punished.

export interface FolderArrival {
  readonly at: string;
  /** Source of the connection. Null if unknown. */
  readonly address: string | null;
  readonly instanceId: string;
}

/** What is stored about an identity's folder. Tickets are hashed. */
export interface KnownFolder {
  readonly ticket: string | null;
  /** The ticket that was traded for `ticket`. Null for the first one. */
  readonly ticketBefore: string | null;
  /** At most `keptArrivals`, the latest first. */
  readonly arrivals: readonly FolderArrival[];
}

export type FolderVerdict =
  | { readonly copied: string }
  | {
      readonly folder: KnownFolder;
      /** The previous address. Null if it is the same as this one. */
      readonly movedFrom: string | null;
      /** Two addresses alternated within a day, each time with a new process. */
      readonly alternates: boolean;
    };

const keptArrivals = 8;
const alternationMs = 86_400_000;

/** Judges an arrival by what is known about the folder. `nextTicket` is the ticket that the welcome message will issue. */
export function judgeFolder(
  known: KnownFolder,
  shown: FolderArrival & { readonly ticket: string | null },
  nextTicket: string,
): FolderVerdict {
  const copied = wrongTicket(known, shown.ticket) ?? secondInstance(known.arrivals, shown);
  if (copied !== null) return { copied };
  const { ticket, ...arrival } = shown;
  const arrivals = [arrival, ...known.arrivals].slice(0, keptArrivals);
  const [before] = known.arrivals;
  const hasMoved = before !== undefined && before.address !== arrival.address;
  return {
    folder: { ticket: nextTicket, ticketBefore: ticket, arrivals },
    movedFrom: hasMoved ? before.address : null,
    alternates: alternates(arrivals),
  };
}

function wrongTicket({ ticket, ticketBefore }: KnownFolder, shown: string | null): string | null {
  if (ticket === null || shown === ticket || shown === ticketBefore) return null;
  return shown === null
    ? "it shows no ticket, and this identity was here before: its folder was copied before its first session, or lost since"
    : "it shows the ticket of an earlier session, and another folder has shown a later one since";
}

function secondInstance(
  arrivals: readonly FolderArrival[],
  { instanceId }: { readonly instanceId: string },
): string | null {
  const last = arrivals.findIndex((arrival) => arrival.instanceId === instanceId);
  if (last <= 0) return null;
  const other = arrivals[last - 1];
  return `this process comes back after another one of the same identity was here (from ${other?.address ?? "an unknown address"} at ${other?.at})`;
}

/** True if the last four address changes went A, B, A, B, each with a new process. */
function alternates(arrivals: readonly FolderArrival[]): boolean {
  const turns = arrivals.filter(({ address }, index) => address !== arrivals[index + 1]?.address).slice(0, 4);
  const [a, b, c, d] = turns;
  if (!a || !b || !c || !d || a.address === null || b.address === null) return false;
  const isPair = a.address === c.address && b.address === d.address;
  const isSameFamily = a.address.includes(":") === b.address.includes(":");
  const areNew = new Set(turns.map(({ instanceId }) => instanceId)).size === turns.length;
  return isPair && isSameFamily && areNew && Date.parse(a.at) - Date.parse(d.at) < alternationMs;
}
