/**
 * Whether the database went back: to a backup, or to a server that had not heard of all when it took over. Each time begins
 * an epoch, in which what was given since counts as lost: crawlers show tickets that the database does not know, leases are
 * nobody's, changes have other numbers.
 */

/** Entries of the journal stay in the database for so long; the latest ones stay for good. */
export const journalDays = 30;

/** Of a Postgres server. Null: it does not say. */
export interface ServerState {
  /** Made by initdb; a physical copy has the same. */
  readonly systemIdentifier: string | null;
  /** Another one after each recovery that ends, and each promotion of a standby. */
  readonly timeline: number | null;
  /** How far its write-ahead log is written, in bytes. */
  readonly position: bigint | null;
}

export interface Epoch extends Omit<ServerState, "position"> {
  readonly epoch: number;
  readonly databaseId: string;
  readonly beganAt: Date;
  readonly cause: EpochCause;
  readonly words: string;
  /** What the journal put back as it began; null: it was not held against it. */
  readonly replay: Replay | null;
}

/** What became of entries of the journal that the database had lost. */
export interface Replay {
  /** Rows that were put back, by table. */
  readonly replayed: Readonly<Record<string, number>>;
  /** Entries whose row somebody changed since: that change stays. */
  readonly outdated: number;
  readonly failed: readonly { readonly kind: string; readonly key: string; readonly words: string }[];
}

/** Rows that were put back, in all. */
export function replayedRows({ replayed }: Pick<Replay, "replayed">): number {
  return Object.values(replayed).reduce((sum, one) => sum + one, 0);
}

export type EpochCause = "created" | "server" | "timeline" | "position" | "journal" | "operator";

/** What lies beside the database of what it was: the last look at it, and the journal. */
export interface Witness {
  /** Null: nobody has looked yet. */
  readonly lastLook: (ServerState & { readonly epoch: number }) | null;
  /** The newest entries of the journal's files, their epoch, and whether the database knows all that are young; null: there are none. */
  readonly lastEntries: { readonly epoch: number; readonly areKnown: boolean } | null;
}

/** Null: it has only gone on. */
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
 * Numbers that outlive the database (of changes, of leases) go on from here: later than any that was given before, whatever was lost,
 * as long as fewer than a million are given in a second.
 */
export function firstNumberOf(beganAt: Date): number {
  return Math.floor(beganAt.getTime() / 1000) * 1_000_000;
}
