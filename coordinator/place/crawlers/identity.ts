/** What the flows know of crawlers' identities and keys, and of the invitations by which crawlers get them. */
import type { CrawlerId } from "#core/ids";
import type { KeyScope } from "#protocol/identity";

/** Whom a key belongs to. */
export interface KeyHolder {
  readonly crawlerId: CrawlerId;
  /** Its operator has shut it out, whatever key it shows. */
  readonly revoked: boolean;
  readonly keyId: number;
  readonly scopes: readonly KeyScope[];
  /** Ed25519, 32 bytes in base64url; null: it needs to show none. */
  readonly publicKey: string | null;
}

/** Where somebody arrived from, and what the process before said at its end. */
export interface SeenArrival {
  readonly crawlerId: CrawlerId;
  /** Null: unknown. */
  readonly address: string | null;
  readonly lastEnd: { readonly at: string; readonly reason: string } | null;
  /** It makes signing keys of its own, so that its identity signs no requests; left out: it does not. */
  readonly signingKeys?: boolean | undefined;
}

/** Tickets as their SHA-256 in hex. */
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
  /** Of the key that the crawler gets. */
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

/** An invitation as operators see it; its secret is not kept. */
export interface InvitationRecord {
  readonly invitationId: number;
  readonly name: string;
  /** For a crawler that is there and gets a new identity. */
  readonly renews: boolean;
  readonly scopes: readonly KeyScope[];
  /** Null: what the partner allows. */
  readonly pagesPerDay: number | null;
  readonly bytesPerDay: number | null;
  readonly createdBy: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly redeemedAt: Date | null;
  readonly revokedAt: Date | null;
  /**
   * open: may be used; joining: used, the crawler has not said that it has its key; joined: used up; expired: it was
   * not used in time, or its crawler was three days joining (nearcrawl fleet reinvite).
   */
  readonly state: "open" | "joining" | "joined" | "expired" | "revoked";
}

// Whether a crawler's folder was copied, told by what two machines with one identity cannot both show:
//
// tickets    Every welcome carries a new one, shown at the next arrival. Good is the last one, or the one
// before it (which led to the last one) as long as the last was never shown: then the crawler ended
// before it had kept it. Once two machines have taken turns, one of them shows an older one.
// instances  A process that comes back after another one of the same folder was let in is a second living one,
// even where both share the files.
//
// Addresses are no proof: machines move, and lines change. Going back and forth is told, not punished.

/** An arrival that was let in. */
export interface FolderArrival {
  /** ISO 8601. */
  readonly at: string;
  /** Where the connection came from; null: unknown. */
  readonly address: string | null;
  readonly instanceId: string;
}

/** What is kept of an identity's folder. Tickets as their hashes. */
export interface KnownFolder {
  readonly ticket: string | null;
  /** What was shown for `ticket`; null: nothing, it was the first. */
  readonly ticketBefore: string | null;
  /** The latest first, at most `keptArrivals`. */
  readonly arrivals: readonly FolderArrival[];
}

export type FolderVerdict =
  | { readonly copied: string }
  | {
      readonly folder: KnownFolder;
      /** The address that it came from the last time, when this one is another. */
      readonly movedFrom: string | null;
      /** Two addresses took turns within a day, each time with a new process. */
      readonly alternates: boolean;
    };

const keptArrivals = 8;
const alternationMs = 86_400_000;

/** Holds an arrival against what is known; `nextTicket` is what its welcome will carry. */
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

/** The last four arrivals at other addresses than the one before went A, B, A, B, each as a new process. */
function alternates(arrivals: readonly FolderArrival[]): boolean {
  const turns = arrivals.filter(({ address }, index) => address !== arrivals[index + 1]?.address).slice(0, 4);
  const [a, b, c, d] = turns;
  if (!a || !b || !c || !d || a.address === null || b.address === null) return false;
  const isPair = a.address === c.address && b.address === d.address;
  const isSameFamily = a.address.includes(":") === b.address.includes(":");
  const areNew = new Set(turns.map(({ instanceId }) => instanceId)).size === turns.length;
  return isPair && isSameFamily && areNew && Date.parse(a.at) - Date.parse(d.at) < alternationMs;
}
