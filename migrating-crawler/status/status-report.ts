/**
 * What an administrator is told of the crawler on their machine: the one shape behind the command, its `--json`, the
 * local page and the control socket. Every list and text in it is bounded. Times are ISO 8601 in UTC, sizes bytes.
 *
 * `statusVersion` counts up when a field goes or changes its meaning; new fields come without notice.
 */
import type { SinceAndWhy } from "../limits/pause.ts";
import type { Blame, Contribution, ErrorReport, UrlCounts } from "./status-history.ts";

export const statusVersion = 1;

export interface PaceReport {
  readonly pace: "slow-down" | "steady" | "hurry-up";
  /** Sites at a time by now; null: as many as the limits allow. */
  readonly places: number | null;
  readonly since: string;
  /** How much work there is, in words. */
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
  /** The state in a plain sentence. */
  readonly words: string;
  readonly crawler: {
    readonly name: string | null;
    /** At the coordinator; null before its first welcome. */
    readonly id: number | null;
    readonly home: string;
    readonly processId: number | null;
    readonly startedAt: string | null;
    /** Of its Ed25519 key, enough to compare with what the operator reads out; null: it has none. */
    readonly fingerprint: string | null;
    /** As the coordinator sees it; null: not told. */
    readonly publicAddress: string | null;
  };
  readonly coordinator: {
    readonly url: string | null;
    /** The page that says who crawls, why, and whom to ask; null: not told. */
    readonly contactPage: string | null;
    /** Of every request to a site. */
    readonly userAgent: string | null;
    readonly connectedSince: string | null;
    /** Since when there is no link; null: there is one, or no crawler runs. */
    readonly notConnectedSince: string | null;
    /** Why there is no link; empty when there is one. */
    readonly notConnectedBecause: string;
  };
  readonly pause: SinceAndWhy | null;
  readonly drain: SinceAndWhy | null;
  /** The local page, with what it takes to pause and resume there; null: there is none. Absent on the page itself. */
  readonly pageUrl?: string | null;
  /** What this machine has contributed. */
  readonly contribution: Contribution;
  /** In plain sentences, the most important first; empty: nothing does. At most 20. */
  readonly holdingBack: readonly string[];
  /** Each of the host's limits, in the order of the settings file. */
  readonly limits: readonly LimitReport[];
  /** Limits that this system does not tell enough for, in plain sentences. */
  readonly notTold: readonly string[];
  /** Null: it does not run. */
  readonly work: {
    readonly openHosts: number;
    /** Of these: left alone for their pace or Crawl-delay, or silent. */
    readonly hostsWaiting: number;
    /** Of the open ones those that are asked more slowly than this host's settings would, and why; 10 at most. */
    readonly slowHosts: readonly { readonly host: string; readonly words: string }[];
    /** What the coordinator asks for, inside this host's limits; null: nothing in this session. */
    readonly pace: PaceReport | null;
    readonly lastMinute: UrlCounts;
    readonly today: UrlCounts;
    readonly probes: ProbeCounts;
  } | null;
  /** Since its start; null: it does not run. */
  readonly shipping: {
    readonly pages: number;
    /** Bodies as they came over the wire, and decoded; and everything that went to the coordinator. */
    readonly fetchedBytes: number;
    readonly bodyBytes: number;
    readonly shippedBytes: number;
    /** `bodyBytes / shippedBytes`; null before anything was shipped. */
    readonly timesSmaller: number | null;
    /** Results that wait on disk for the coordinator. */
    readonly waitingResults: number;
    readonly spoolBytes: number;
    readonly spoolMostBytes: number;
  } | null;
  readonly errors: {
    /** Since midnight in the host's time zone. */
    readonly today: Readonly<Record<Blame, number>>;
    /** The latest first, at most 100, over restarts. */
    readonly latest: readonly ErrorReport[];
  };
  readonly versions: {
    /** Of the crawler that runs. */
    readonly crawler: string | null;
    readonly release: string | null;
    readonly dock: string | null;
    readonly node: string | null;
    /** Spoken with the coordinator; null: not connected yet. */
    readonly protocol: number | null;
  };
  /** Null: no dock has run here. */
  readonly releases: ReleasesReport | null;
  /** How processes ended that nobody had asked to, the latest first; at most 10. */
  readonly lastEnds: readonly { readonly at: string; readonly reason: string }[];
}

export interface LimitReport {
  /** The setting: `bytesPerDay`. */
  readonly limit: string;
  readonly unit: string;
  /** Null: not measured. */
  readonly used: number | null;
  /** Null: there is none. */
  readonly cap: number | null;
  readonly resetsAt: string | null;
  /** What it holds back right now, in a plain sentence; empty: nothing. */
  readonly holdingBack: string;
}

/** Of the coordinator's requests to measure the way to a site, since the start. */
export interface ProbeCounts {
  readonly asked: number;
  readonly measured: number;
  /** A limit or the deny-list forbade it. */
  readonly notAllowed: number;
  readonly unanswered: number;
}

export interface ReleasesReport {
  /** What the dock runs; null: nothing yet. */
  readonly current: string | null;
  /** It is new, and gives way to the one before by itself if it is not well. */
  readonly isWatched: boolean;
  readonly previous: string | null;
  /** Offered by the coordinator and not taken so far, since then. */
  readonly offeredSince: string | null;
  /** No release is taken, since then and why; null: they are. */
  readonly takesNothing: { readonly since: string; readonly reason: string } | null;
  /** The host's policy, in words; null: the settings cannot be read. */
  readonly policy: string | null;
  /** Releases that were not taken and why, the latest first; at most 20. */
  readonly notTaken: readonly {
    readonly version: string;
    readonly state: "refused" | "pinned" | "delayed";
    readonly reason: string;
  }[];
  /** Releases that gave way to the one before, the latest first; at most 20. */
  readonly returned: readonly { readonly version: string; readonly at: string; readonly reason: string }[];
}
