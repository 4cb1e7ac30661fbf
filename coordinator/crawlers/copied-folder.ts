/**
 * Whether a crawler's folder was copied, told by what two machines with one identity cannot both show:
 *
 *   tickets    Every welcome carries a new one, shown at the next arrival. Good is the last one, or the one
 *              before it (which led to the last one) as long as the last was never shown: then the crawler ended
 *              before it had kept it. Once two machines have taken turns, one of them shows an older one.
 *   instances  A process that comes back after another one of the same folder was let in is a second living one,
 *              even where both share the files.
 *
 * Addresses are no proof: machines move, and lines change. Going back and forth is told, not punished.
 */

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

export const keptArrivals = 8;
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
