/**
 * Detects that the database was restored to an earlier state, from a backup or by failover to a server that lagged
 * behind. Each time begins an epoch, and data that came after the restored state counts as lost: crawlers present
 * unknown tickets, leases are void, and changes have other numbers.
 */

/** For how many days entries of the journal stay in the database. The latest ones stay for good. */
export const journalDays = 30;

/** State of a Postgres server. What it does not report is null. */
export interface ServerState {
  /** Assigned by initdb. A physical copy of the server has the same one. */
  readonly systemIdentifier: string | null;
  /** Changes after each recovery and each promotion of a standby. */
  readonly timeline: number | null;
  /** Write position of its write-ahead log, in bytes. */
  readonly position: bigint | null;
}

export interface Epoch extends Omit<ServerState, "position"> {
  readonly epoch: number;
  readonly databaseId: string;
  readonly beganAt: Date;
  readonly cause: EpochCause;
  readonly words: string;
  /** What the journal restored at the beginning of the epoch; null if no journal was applied. */
  readonly replay: Replay | null;
}

/** What became of the journal's entries that the database had lost. */
export interface Replay {
  /** Number of restored rows, by table. */
  readonly replayed: Readonly<Record<string, number>>;
  /** Number of entries whose row was changed later. The later change stays. */
  readonly outdated: number;
  readonly failed: readonly { readonly kind: string; readonly key: string; readonly words: string }[];
}

export function replayedRows({ replayed }: Pick<Replay, "replayed">): number {
  return Object.values(replayed).reduce((sum, one) => sum + one, 0);
}

export type EpochCause = "created" | "server" | "timeline" | "position" | "journal" | "operator";

/** The past state of the database as recorded outside of it: when it was last checked, and by the journal. */
export interface Witness {
  /** Null if it was never checked. */
  readonly lastLook: (ServerState & { readonly epoch: number }) | null;
  /**
   * Epoch of the latest entries in the journal's files, and whether the database knows all recent ones; null if there
   * are no entries.
   */
  readonly lastEntries: { readonly epoch: number; readonly areKnown: boolean } | null;
}

/** Returns null if the database did not go back. */
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
 * Numbers that outlive the database (of changes, of leases) continue from here. This is higher than any assigned
 * before, whatever was lost, as long as fewer than a million are assigned per second.
 */
export function firstNumberOf(beganAt: Date): number {
  return Math.floor(beganAt.getTime() / 1000) * 1_000_000;
}
