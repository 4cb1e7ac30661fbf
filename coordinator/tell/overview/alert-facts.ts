/** What the alert rules look at: plain values, read at one moment by whoever asks. Times in ms since 1970. */
import type { GatedHosts, SpanFigures } from "./queue-api.ts";

/** Of whoever can say what the rules look at. */
export interface AlertReads {
  alertFacts(now: Date): Promise<AlertFacts>;
}

export interface AlertFacts {
  readonly nowMs: number;
  /** Without those that were shut out. */
  readonly crawlers: readonly CrawlerFacts[];
  /** Of the hosts that are due; seconds, null: none is due. */
  readonly queue: { readonly p95Seconds: number | null; readonly unplacedSeconds: number | null };
  /** Links of results to other hosts than their own: how many wait to be applied, and how long the oldest has. */
  readonly linkOutbox: { readonly effects: number; readonly ageSeconds: number };
  readonly hour: Pick<SpanFigures, "fetches" | "failures">;
  /** The last 24 hours. */
  readonly day: Pick<SpanFigures, "fetchedBytes" | "shippedBytes">;
  /** When the last whole minute's figures were written; null: never. */
  readonly figuresAtMs: number | null;
  /** Of the registry in force; null: none was imported. */
  readonly registryAppliedMs: number | null;
  /** What went wrong with it; absent: nothing. */
  readonly registryAccident?: RegistryAccident | null;
  /** Of the last hour, by crawler and kind. */
  readonly incidents: readonly IncidentFacts[];
  /** Invitations that can still be used. */
  readonly openInvitations: number;
  /** Newest first. */
  readonly releases: readonly ReleaseFacts[];
  /** Until when somebody states what is the newest release; null: nobody ever did. */
  readonly statedUntilMs: number | null;
  /** How long the database took for the simplest of questions. */
  readonly databaseMs: number;
  /** Above and below this coordinator; absent: nobody. */
  readonly relatives?: readonly RelativeFacts[];
  readonly accuracy: { readonly samples: number; readonly share: number | null };
  /** Absent: none is expected. */
  readonly backup?: BackupFacts;
  /** The last time that the database went back (coordinator/journal); absent: it never did. */
  readonly wentBack?: WentBackFacts;
  /** Of the disk that the embedded database lies on, or of the room that a server's was given; absent: not known. */
  readonly disk?: DiskFacts;
  /** Hosts behind bot gates, of those that were ever asked; absent: none. */
  readonly botGates?: Pick<GatedHosts, "asked" | "providers">;
  /** What a coordinator that runs knows of itself, in memory; absent: none was asked. */
  readonly own?: OwnFacts;
  /** That hold now; absent: none. */
  readonly mutes?: readonly AlertMute[];
  /** As the coordinator that leads has noted them (alerts/watch-alerts); absent: none. */
  readonly noted?: readonly NotedAlert[];
  /** Where alerts are sent; absent or empty: nowhere. */
  readonly channels?: readonly AlertChannel[];
}

/** Lowest last. `critical`: the crawl stands or does harm, look now. `warning`: look today. `info`: worth knowing. */
export const alertSeverities = ["critical", "warning", "info"] as const;

export type AlertSeverity = (typeof alertSeverities)[number];

/** An alert that holds, beyond what its rule finds at this moment. */
export interface NotedAlert {
  readonly name: string;
  readonly beganAt: Date;
  /** When people were last told of it; null: not yet, or nobody is to be. */
  readonly toldAt: Date | null;
  readonly acknowledged: Acknowledgement | null;
}

export interface Acknowledgement {
  readonly by: string;
  /** ISO 8601. */
  readonly at: string;
  readonly note: string;
  /** What the alert named then; anything beyond brings it back. */
  readonly targets: readonly string[];
}

export interface AlertChannel {
  readonly name: string;
  readonly kind: "webhook" | "email";
  /** In words, without anything secret. */
  readonly place: string;
  readonly least: AlertSeverity;
  readonly deliveredAt: Date | null;
  /** Null: the last attempt succeeded, or there was none. */
  readonly failingSince: Date | null;
  /** In a row. */
  readonly failures: number;
  readonly failure: string;
  /** Alerts that wait for its next attempt. */
  readonly waiting: number;
}

export interface WentBackFacts {
  readonly atMs: number;
  /** Of the journal's entries, those that could not be put back; null: there was no journal. */
  readonly failed: number | null;
}

export interface BackupFacts {
  /** Of the embedded server: copies of it; of one's own: what it archives of its log. */
  readonly kind: "copy" | "archive";
  /** Null: there is none (any more). */
  readonly lastMs: number | null;
  /** The archiving fails since the last that succeeded. */
  readonly isFailing: boolean;
  readonly warnAfterHours: number;
}

export interface RegistryAccident {
  /** Of the generation that was rolled back last, where none is in force any more; null: one is, or none ever was. */
  readonly emptiedFrom: number | null;
  /** Subnets are delegated, and none of them is in the tree in force. */
  readonly noneInUse: boolean;
  /** Why the latest import was refused, where nothing was applied since; null: it was not. */
  readonly refusedWords: string | null;
}

export interface DiskFacts {
  readonly freeBytes: number;
  /** What it has lost of that over the last hours, as a day's pace; null: not measured for long enough. */
  readonly lostBytesPerDay: number | null;
}

/** What needs no database to be known: while that is gone, it is all there is. */
export interface OwnFacts {
  /** This coordinator has written no figures before. */
  readonly startedAtMs?: number;
  /** The data folder was lost; null or absent: it is there, or another machine's. */
  readonly gone?: OwnFault | null;
  /** Null: nothing is known to be wrong with this coordinator's clock. */
  readonly clock: OwnFault | null;
  /** Null: it answers. */
  readonly silent: OwnFault | null;
  /** Null: it can be written, as far as is known. */
  readonly unwritable: OwnFault | null;
  /** Connections are refused, since others hold all of them; null: none was within the last minute. */
  readonly usedUp?: OwnFault | null;
  /** Of the journal beside the database; null: everything that was changed is in it. */
  readonly journal: OwnFault | null;
  /** Its DNS servers, which have answered nothing; null: they do, as far as is known. */
  readonly dns?: OwnFault | null;
  /** That it shows itself; null: a proxy shows one, or there is none. */
  readonly certificate?: {
    readonly file: string;
    readonly endsMs: number;
    /** Why a renewed one is not shown; null: there is none, or it is. */
    readonly notTaken: string | null;
  } | null;
  /** Over the last minute or two; null: not watched. */
  readonly eventLoop: { readonly p99Ms: number; readonly mostMs: number } | null;
  readonly jobs: readonly JobFacts[];
  /** Since when nobody leads the coordinators of this database; null: one does. */
  readonly leaderlessSinceMs: number | null;
  /** Other coordinators of this database that went silent without having ended. */
  readonly silentCoordinators: readonly { readonly name: string; readonly sinceMs: number }[];
}

export interface OwnFault {
  readonly words: string;
  readonly sinceMs: number;
}

/** A duty of the clock (core/scheduler). */
export interface JobFacts {
  readonly name: string;
  readonly everyMs: number;
  readonly runningSinceMs: number | null;
  /** When a turn last ended well; null: none has. */
  readonly succeededMs: number | null;
  /** In a row. */
  readonly failures: number;
  readonly failingSinceMs: number | null;
  /** Of the last failure. */
  readonly words: string | null;
}

export interface AlertMute {
  /** Of the rule. */
  readonly name: string;
  /** A crawler or release; null: all of the rule. */
  readonly target: string | null;
  readonly until: Date;
  readonly reason: string;
  readonly mutedBy: string;
}

export interface RelativeFacts {
  readonly kind: "parent" | "child";
  readonly name: string;
  /** Null: it has not spoken yet. */
  readonly contactedMs: number | null;
  /** Null: the last exchange succeeded. */
  readonly failingSinceMs: number | null;
  readonly failure: string | null;
  /** When URLs for it were given up last, because too many waited; null: never. */
  readonly droppedMs: number | null;
}

export interface CrawlerFacts {
  readonly name: string;
  readonly state: "online" | "offline" | "draining";
  /** Null: it has never connected. */
  readonly lastSeenMs: number | null;
  readonly drainingSinceMs: number | null;
  /** Its results, or its probe reports, are not believed. */
  readonly distrusted: boolean;
  /** On its disk, not yet acknowledged, as of its last heartbeat. */
  readonly waitingResults: number;
  /** Why its disk takes no results, in its words; null or absent: it does. */
  readonly diskFault?: string | null;
  /** Free where its folder lies; null or absent: its version does not say. */
  readonly diskFreeBytes?: number | null;
  /** Over the last hour. */
  readonly fetches: number;
  /** Of those, failed by its own or its machine's fault. */
  readonly ownFailures: number;
  /** Of those, failed on the way: no connection in time, or one that was lost; absent: not told. */
  readonly networkFailures?: number;
  /** A copied folder was noticed within the last day. */
  readonly copiedFolder: boolean;
  /** It has joined, and nothing has run there yet. */
  readonly neverRan: boolean;
  /** When it joined; null: it was registered by a key of the operator's. */
  readonly joinedMs: number | null;
  /** When its session began; null: it has none. */
  readonly connectedMs: number | null;
  /** Why it gets no work although it runs, in words; null: it gets some, or there is none for it. */
  readonly idleWhy: string | null;
  /** It is away, and its supervisor said that it waits for something. */
  readonly waits: boolean;
}

export interface IncidentFacts {
  readonly kind: string;
  /** Null: of nobody known. */
  readonly crawler: string | null;
  readonly count: number;
}

export interface ReleaseFacts {
  readonly version: string;
  readonly stage: "none" | "one" | "percent" | "all";
  /** Somebody moved it, or it moved by itself; a release that nobody has offered yet is not held. */
  readonly wasOffered: boolean;
  readonly revoked: boolean;
  /** Signed by a key that counts, in its time, not revoked. */
  readonly mayRun: boolean;
  readonly words: string;
  /** Crawlers that would not take it or went back to the one before. */
  readonly turnedDown: number;
}
