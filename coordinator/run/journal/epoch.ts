/**
 * Detects that the database was restored to an earlier state, from a backup or by failover to a lagging server. Each time
 * begins an epoch, in which later data counts as lost: crawlers show unknown tickets, leases are void, changes have other
 * numbers.
 */

/** Entries of the journal stay in the database this long; the latest ones stay for good. */
export const journalDays = 30;

/** State of a Postgres server; null where it does not report it. */
export interface ServerState {
  /** Made by initdb; a physical copy has the same one. */
  readonly systemIdentifier: string | null;
  /** Changes after each recovery and each promotion of a standby. */
  readonly timeline: number | null;
  /** The write position of its write-ahead log, in bytes. */
  readonly position: bigint | null;
}

export interface Epoch extends Omit<ServerState, "position"> {
  readonly epoch: number;
  readonly databaseId: string;
  readonly beganAt: Date;
  readonly cause: EpochCause;
  readonly words: string;
  /** What the journal restored at its beginning; null when no journal was applied. */
  readonly replay: Replay | null;
}

/** The fate of journal entries that the database had lost. */
export interface Replay {
  /** Restored rows by table. */
  readonly replayed: Readonly<Record<string, number>>;
  /** Entries whose row was changed later; that change stays. */
  readonly outdated: number;
  readonly failed: readonly { readonly kind: string; readonly key: string; readonly words: string }[];
}

export function replayedRows({ replayed }: Pick<Replay, "replayed">): number {
  return Object.values(replayed).reduce((sum, one) => sum + one, 0);
}

export type EpochCause = "created" | "server" | "timeline" | "position" | "journal" | "operator";

/** The database's past state as recorded outside it: the last look at it, and the journal. */
export interface Witness {
  /** Null when nobody has looked yet. */
  readonly lastLook: (ServerState & { readonly epoch: number }) | null;
  /**
   * The epoch of the newest entries in the journal's files, and whether the database knows all recent ones; null when there are
   * none.
   */
  readonly lastEntries: { readonly epoch: number; readonly areKnown: boolean } | null;
}

/** Returns null when the database only went forward. */
export function whyWentBack(
  epoch: Epoch,
  server: ServerState,
  { lastLook, lastEntries }: Witness,
): { readonly cause: EpochCause; readonly words: string } | null {
  if (differs(epoch.systemIdentifier, server.systemIdentifier))
    return { cause: "server", words: "the database is on another server than before" };
  if (differs(epoch.timeline, server.timeline))
    return {
      cause: "timeline",
      words: `the server is on timeline ${server.timeline}, and was on ${epoch.timeline}: it was restored, or a standby took over`,
    };
  const newestEpoch = Math.max(lastLook?.epoch ?? 0, lastEntries?.epoch ?? 0);
  if (newestEpoch > epoch.epoch)
    return {
      cause: "journal",
      words: `epoch ${newestEpoch} was seen before, and the database knows of ${epoch.epoch} at most`,
    };
  const isSameServer =
    lastLook !== null &&
    lastLook.epoch === epoch.epoch &&
    lastLook.systemIdentifier === server.systemIdentifier &&
    lastLook.timeline === server.timeline;
  if (
    isSameServer &&
    lastLook.position !== null &&
    server.position !== null &&
    server.position < lastLook.position
  )
    return {
      cause: "position",
      words:
        "the server's write-ahead log is shorter than it was: its files were put back as they were before",
    };
  if (lastEntries?.epoch === epoch.epoch && !lastEntries.areKnown)
    return { cause: "journal", words: "the journal's newest entries are not in the database" };
  return null;
}

const differs = <T>(known: T | null, seen: T | null) => known !== null && seen !== null && known !== seen;

/**
 * Numbers that outlive the database (of changes, of leases) continue from here: higher than any assigned before, whatever was
 * lost, as long as fewer than a million are assigned per second.
 */
export function firstNumberOf(beganAt: Date): number {
  return Math.floor(beganAt.getTime() / 1000) * 1_000_000;
}
