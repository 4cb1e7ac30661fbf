/**
 * The report for administrators, in one shape for the command, its `--json`, the local page and the control socket. Every list
 * and text is limited. Times are ISO 8601 in UTC, sizes are bytes.
 *
 * `statusVersion` increases when a field is removed or changes its meaning. New fields may appear at any time.
 */

import { join } from "node:path";
import { jsonIn } from "../core/json.ts";
import { isWatched, type ReleaseState, releaseState } from "../core/release-state.ts";
import { bytesInWords, type LimitUsage } from "../limits/limit-usage.ts";
import type { SinceAndWhy } from "../limits/state-file.ts";
import type { Blame, Contribution, ErrorReport, UrlCounts } from "./status-history.ts";

export const statusVersion = 1;

export interface PaceReport {
  readonly pace: "slow-down" | "steady" | "hurry-up";
  readonly places: number | null;
  readonly since: string;
  readonly reason: string;
}

export interface StatusReport {
  readonly statusVersion: typeof statusVersion;
  readonly at: string;
  /**
   * crawling       it has sites open
   * waiting        it is connected and has nothing open, because there is no work or a limit holds it back
   * not-connected  it tries to reach its coordinator, and its leases continue for a while
   * paused         an administrator paused it, and it contacts only its coordinator
   * draining       it finishes its work, and leaves permanently
   * not-running    no crawler runs in this folder, and the rest comes from its files
   */
  readonly state: "crawling" | "waiting" | "not-connected" | "paused" | "draining" | "not-running";
  readonly words: string;
  readonly crawler: {
    readonly name: string | null;
    /** The id at the coordinator. Null before the first welcome. */
    readonly id: number | null;
    readonly home: string;
    readonly processId: number | null;
    readonly startedAt: string | null;
    /** A prefix of the Ed25519 key, to compare with what the operator reads out. Null if there is no key. */
    readonly fingerprint: string | null;
    readonly publicAddress: string | null;
  };
  readonly coordinator: {
    readonly url: string | null;
    /** The page that says who crawls, why, and whom to ask. Null if unknown. */
    readonly contactPage: string | null;
    readonly userAgent: string | null;
    readonly connectedSince: string | null;
    /** Null if there is a link or no crawler is running. */
    readonly notConnectedSince: string | null;
    readonly notConnectedBecause: string;
  };
  readonly pause: SinceAndWhy | null;
  readonly drain: SinceAndWhy | null;
  /** The local page with its key. Null if there is none, and absent on the page itself. */
  readonly pageUrl?: string | null;
  readonly contribution: Contribution;
  /** Sentences about what blocks the crawler, most important first, at most 20. */
  readonly holdingBack: readonly string[];
  readonly limits: readonly LimitReport[];
  /** Sentences about limits for which this system lacks information. */
  readonly notTold: readonly string[];
  readonly work: {
    readonly openHosts: number;
    /** Open hosts that rest for their pace or Crawl-delay, or are silent. */
    readonly hostsWaiting: number;
    /** At most 10 open hosts that are asked more slowly than the settings allow, with the reason. */
    readonly slowHosts: readonly { readonly host: string; readonly words: string }[];
    /** What the coordinator asks for within this host's limits. Null if it has asked for nothing in this session. */
    readonly pace: PaceReport | null;
    readonly lastMinute: UrlCounts;
    readonly today: UrlCounts;
    readonly probes: ProbeCounts;
  } | null;
  /** Counts since the start. Null if no crawler is running. */
  readonly shipping: {
    readonly pages: number;
    /** Bytes of the bodies as transferred and as decoded, and of everything sent to the coordinator. */
    readonly fetchedBytes: number;
    readonly bodyBytes: number;
    readonly shippedBytes: number;
    /** `bodyBytes / shippedBytes`, or null before anything was sent. */
    readonly timesSmaller: number | null;
    readonly waitingResults: number;
    readonly spoolBytes: number;
    readonly spoolMostBytes: number;
  } | null;
  readonly errors: {
    readonly today: Readonly<Record<Blame, number>>;
    /** The latest first, at most 100, across restarts. */
    readonly latest: readonly ErrorReport[];
  };
  readonly versions: {
    readonly crawler: string | null;
    readonly release: string | null;
    readonly dock: string | null;
    readonly node: string | null;
    /** The protocol version in use. Null before a connection. */
    readonly protocol: number | null;
  };
  /** Null if no supervisor has run here. */
  readonly releases: ReleasesReport | null;
  /** Ends of processes that nobody requested, latest first, at most 10. */
  readonly lastEnds: readonly { readonly at: string; readonly reason: string }[];
}

export interface LimitReport extends Omit<LimitUsage, "resetsAt"> {
  readonly resetsAt: string | null;
}

export interface ProbeCounts {
  readonly asked: number;
  readonly measured: number;
  readonly notAllowed: number;
  readonly unanswered: number;
}

interface ReleasesReport {
  readonly current: string | null;
  /** True if the release is new and will be rolled back if it fails. */
  readonly isWatched: boolean;
  readonly previous: string | null;
  /** Since when the coordinator has offered it without its being installed. */
  readonly offeredSince: string | null;
  /** Since when no release has been installed, and why. Null if there is no obstacle. */
  readonly takesNothing: { readonly since: string; readonly reason: string } | null;
  /** The host's policy as text. Null if the settings are unreadable. */
  readonly policy: string | null;
  /** Releases that were not installed, with the reason, latest first, at most 20. */
  readonly notTaken: readonly {
    readonly version: string;
    readonly state: "refused" | "pinned" | "delayed";
    readonly reason: string;
  }[];
  /** Releases that were rolled back, latest first, at most 20. */
  readonly returned: readonly { readonly version: string; readonly at: string; readonly reason: string }[];
}

const fingerprintLength = 12;

export function limitReport({ resetsAt, ...usage }: LimitUsage): LimitReport {
  return { ...usage, resetsAt: resetsAt?.toISOString() ?? null };
}

/** `publicKey` is raw Ed25519 in base64url. Null if there is no key. */
export const fingerprintOf = (publicKey: string | null) => publicKey?.slice(0, fingerprintLength) ?? null;

export function stateWords(
  report: Pick<
    StatusReport,
    "state" | "work" | "pause" | "drain" | "coordinator" | "holdingBack" | "shipping"
  >,
): string {
  const { state, work, pause, drain, coordinator, holdingBack } = report;
  const open = plural(work?.openHosts ?? 0, "site");
  switch (state) {
    case "crawling":
      return `Crawling: ${open} open, ${plural(work?.lastMinute.urls ?? 0, "URL")} in the last minute.`;
    case "waiting":
      return sentence(`Connected, idle${because(holdingBack[0])}`);
    case "not-connected":
      return sentence(`Not connected${because(coordinator.notConnectedBecause)}`);
    case "paused":
      return sentence(`Paused${because(pause?.reason)}`);
    case "draining":
      return sentence(`Draining, to leave for good${because(drain?.reason)}. ${leftWords(report)}`);
    case "not-running":
      return "No crawler runs in this folder.";
  }
}

function leftWords({ work, shipping, coordinator }: Parameters<typeof stateWords>[0]): string {
  const hosts = plural(work?.openHosts ?? 0, "site is", "sites are");
  const results = plural(shipping?.waitingResults ?? 0, "result waits", "results wait");
  const link = coordinator.connectedSince === null ? "; the coordinator is not reached" : "";
  return `${hosts} still open, ${results} for the coordinator${link}`;
}

const because = (reason: string | undefined) => (reason ? `: ${reason}` : "");
const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);

// Reads from HOME/releases which releases run here and which do not, without changing anything.

const maxFileBytes = 1024 * 1024;
const mostListed = 20;

/** Returns null if no supervisor has run here or its file is unreadable. `policy` is the host's, as text. */
export function releasesReport(home: string, policy: string | null): ReleasesReport | null {
  const state = readReleaseState(home);
  if (state === null) return null;
  const notTaken = state.reports.flatMap(({ version, state: what, reason }) =>
    what === "refused" || what === "pinned" || what === "delayed" ? [{ version, state: what, reason }] : [],
  );
  return {
    current: state.current?.version ?? null,
    isWatched: isWatched(state),
    previous: previousOf(state),
    offeredSince: state.offered?.firstAt ?? null,
    takesNothing: state.takesNothing,
    policy,
    notTaken: notTaken.reverse().slice(0, mostListed),
    returned: state.bad
      .map(({ version, at, reason, againAt }) => ({
        ...{ version, at },
        reason: againAt === null ? reason : `${reason}; it is tried again from ${againAt} on`,
      }))
      .reverse()
      .slice(0, mostListed),
  };
}

export const readReleaseState = (home: string): ReleaseState | null =>
  jsonIn(join(home, "releases", "state.json"), maxFileBytes, releaseState);

/** The release that replaces the current one if that fails. */
function previousOf(state: ReleaseState): string | null {
  return (isWatched(state) ? state.good : state.previous)?.version ?? null;
}

/** Example: `1 site`, `12,000 sites`. `many` is for irregular plurals. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Example: `4 min`, `3 h 20 min`, `2 days`. */
export function durationInWords(ms: number): string {
  const minutes = Math.round(Math.max(0, ms) / 60_000);
  if (minutes < 1) return `${Math.round(Math.max(0, ms) / 1000)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** Example: `2026-11-22 12:40 UTC`. */
export function minuteOf(at: string): string {
  return `${at.slice(0, 16).replace("T", " ")} UTC`;
}

export function amountInWords(amount: number, unit: string): string {
  if (unit === "bytes") return bytesInWords(amount);
  const rounded = Number.isInteger(amount) ? amount : Math.round(amount * 100) / 100;
  return `${rounded.toLocaleString("en")} ${unit}`.trim();
}

/** Example: `slow down: 4 sites at a time since 2026-11-22 12:40 UTC (2 host slices due or in hand, under 4: …)`. */
export function paceInWords({ pace, places, since, reason }: PaceReport): string {
  const allowed =
    places === null ? "as many sites at a time as the limits allow" : `${plural(places, "site")} at a time`;
  return `${pace.replace("-", " ")}: ${allowed}, since ${minuteOf(since)} (${reason})`;
}
