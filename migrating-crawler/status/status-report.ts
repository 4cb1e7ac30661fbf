/**
 * The report that administrators get: one shape for the command, its `--json`, the local page and the control socket.
 * Every list and text is limited. Times are ISO 8601 in UTC, sizes are bytes.
 *
 * `statusVersion` increases when a field is removed or changes its meaning; new fields come without notice.
 */
import type { SinceAndWhy } from "../limits/pause.ts";
import type { Blame, Contribution, ErrorReport, UrlCounts } from "./status-history.ts";

export const statusVersion = 1;

export interface PaceReport {
  readonly pace: "slow-down" | "steady" | "hurry-up";
  /** Sites at a time now; null means as many as the limits allow. */
  readonly places: number | null;
  readonly since: string;
  /** A description of how much work there is. */
  readonly reason: string;
}

export interface StatusReport {
  readonly statusVersion: typeof statusVersion;
  readonly at: string;
  /**
   * crawling       it has sites open
   * waiting        it is connected and has nothing open: there is no work, or a limit holds it back
   * not-connected  it looks for its coordinator; what it has leased goes on for a while
   * paused         an administrator paused it; it contacts nobody but its coordinator
   * draining       it ends what it has, and leaves for good
   * not-running    no crawler runs in this folder; the rest is what its files say
   */
  readonly state: "crawling" | "waiting" | "not-connected" | "paused" | "draining" | "not-running";
  /** The state as a sentence. */
  readonly words: string;
  readonly crawler: {
    readonly name: string | null;
    /** The id at the coordinator; null before the first welcome. */
    readonly id: number | null;
    readonly home: string;
    readonly processId: number | null;
    readonly startedAt: string | null;
    /** A prefix of the Ed25519 key to compare with what the operator reads out; null without a key. */
    readonly fingerprint: string | null;
    /** As the coordinator sees it; null when unknown. */
    readonly publicAddress: string | null;
  };
  readonly coordinator: {
    readonly url: string | null;
    /** The page that says who crawls, why, and whom to ask; null when unknown. */
    readonly contactPage: string | null;
    /** The User-Agent of every request to a site. */
    readonly userAgent: string | null;
    readonly connectedSince: string | null;
    /** Null when there is a link or no crawler runs. */
    readonly notConnectedSince: string | null;
    /** Why there is no link; empty when there is one. */
    readonly notConnectedBecause: string;
  };
  readonly pause: SinceAndWhy | null;
  readonly drain: SinceAndWhy | null;
  /** The local page with its key; null when there is none. Absent on the page itself. */
  readonly pageUrl?: string | null;
  readonly contribution: Contribution;
  /** Sentences about what blocks the crawler, most important first, at most 20. */
  readonly holdingBack: readonly string[];
  /** The host's limits in the order of the settings file. */
  readonly limits: readonly LimitReport[];
  /** Sentences about limits for which this system lacks information. */
  readonly notTold: readonly string[];
  /** Null when no crawler runs. */
  readonly work: {
    readonly openHosts: number;
    /** Open hosts that rest for their pace or Crawl-delay, or are silent. */
    readonly hostsWaiting: number;
    /** Open hosts that are asked more slowly than the settings allow, and why; at most 10. */
    readonly slowHosts: readonly { readonly host: string; readonly words: string }[];
    /** What the coordinator asks for within this host's limits; null when nothing in this session. */
    readonly pace: PaceReport | null;
    readonly lastMinute: UrlCounts;
    readonly today: UrlCounts;
    readonly probes: ProbeCounts;
  } | null;
  /** Since the start; null when no crawler runs. */
  readonly shipping: {
    readonly pages: number;
    /** Bodies as transferred and as decoded, and everything sent to the coordinator. */
    readonly fetchedBytes: number;
    readonly bodyBytes: number;
    readonly shippedBytes: number;
    /** `bodyBytes / shippedBytes`, or null before anything was shipped. */
    readonly timesSmaller: number | null;
    /** Results waiting on disk for the coordinator. */
    readonly waitingResults: number;
    readonly spoolBytes: number;
    readonly spoolMostBytes: number;
  } | null;
  readonly errors: {
    /** Since midnight in the host's time zone. */
    readonly today: Readonly<Record<Blame, number>>;
    /** The latest first, at most 100, across restarts. */
    readonly latest: readonly ErrorReport[];
  };
  readonly versions: {
    /** The version of the running crawler. */
    readonly crawler: string | null;
    readonly release: string | null;
    readonly dock: string | null;
    readonly node: string | null;
    /** The protocol version in use; null before a connection. */
    readonly protocol: number | null;
  };
  /** Null when no supervisor has run here. */
  readonly releases: ReleasesReport | null;
  /** Unrequested ends of processes, latest first; at most 10. */
  readonly lastEnds: readonly { readonly at: string; readonly reason: string }[];
}

export interface LimitReport {
  /** The setting's name, such as `bytesPerDay`. */
  readonly limit: string;
  readonly unit: string;
  /** Null when not measured. */
  readonly used: number | null;
  /** Null when there is no cap. */
  readonly cap: number | null;
  readonly resetsAt: string | null;
  /** A sentence about what the limit blocks now, or empty. */
  readonly holdingBack: string;
}

/** Counts the coordinator's probe requests since the start. */
export interface ProbeCounts {
  readonly asked: number;
  readonly measured: number;
  /** A limit or the deny-list forbade it. */
  readonly notAllowed: number;
  readonly unanswered: number;
}

export interface ReleasesReport {
  /** The release that the supervisor runs, or null. */
  readonly current: string | null;
  /** The release is new and is rolled back if it fails. */
  readonly isWatched: boolean;
  readonly previous: string | null;
  /** Since when the coordinator offers it without being taken. */
  readonly offeredSince: string | null;
  /** Since when and why no release is taken, or null. */
  readonly takesNothing: { readonly since: string; readonly reason: string } | null;
  /** The host's policy as text; null when the settings are unreadable. */
  readonly policy: string | null;
  /** Releases that were not taken, with the reason, latest first; at most 20. */
  readonly notTaken: readonly {
    readonly version: string;
    readonly state: "refused" | "pinned" | "delayed";
    readonly reason: string;
  }[];
  /** Releases that were rolled back, latest first; at most 20. */
  readonly returned: readonly { readonly version: string; readonly at: string; readonly reason: string }[];
}
