/** The report of a crawler that runs, from what its rooms know. */

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { contactPageOf } from "#protocol/user-agent";
import { isWatched, type ReleaseState, releaseState } from "../core/release-state.ts";
import { bytesInWords, type LimitUsage } from "../limits/limit-usage.ts";
import type { Paused } from "../limits/pause.ts";
import type { AskedPace } from "../limits/work-pace.ts";
import type { CrawlerStatus } from "../link/crawler-status.ts";
import type { DockLine } from "../link/supervisor-line.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { policyWords } from "../settings/release-policy.ts";
import { contributionOf } from "./status-history.ts";
import type { StatusRecord } from "./status-record.ts";
import {
  type LimitReport,
  type PaceReport,
  type ReleasesReport,
  type SinceAndWhy,
  type StatusReport,
  sinceAndWhy,
  statusVersion,
} from "./status-report.ts";

type StatusWork = NonNullable<StatusReport["work"]>;

interface RunningParts {
  readonly config: CrawlerConfig;
  readonly status: CrawlerStatus;
  readonly usage: readonly LimitUsage[];
  readonly notTold: readonly string[];
  readonly record: StatusRecord;
  readonly paused: Paused | null;
  readonly draining: SinceAndWhy | null;
  /** Open hosts that take a place of the limit on hosts. */
  readonly hostsInPlace: number;
  readonly slowHosts: StatusWork["slowHosts"];
  /** What the coordinator asks for; null: nothing. */
  readonly pace: AskedPace | null;
  readonly spoolBytes: number;
  readonly spoolMostBytes: number;
  /** Raw Ed25519 in base64url; null: it has none. */
  readonly publicKey: string | null;
  readonly softwareVersion: string;
  readonly dock: DockLine | undefined;
}

const mostHoldingBack = 20;
const fingerprintLength = 12;

export function runningReport(parts: RunningParts): StatusReport {
  const { config, status, record, notTold } = parts;
  const { story, probes } = record;
  const state = stateOf(parts);
  const report = {
    statusVersion,
    at: new Date().toISOString(),
    state,
    crawler: crawlerPart(parts),
    coordinator: coordinatorPart(parts),
    pause: sinceAndWhy(parts.paused),
    drain: parts.draining,
    contribution: contributionOf(story),
    holdingBack: status.holdingBack.slice(0, mostHoldingBack),
    limits: parts.usage.map(limitReport),
    notTold,
    work: {
      openHosts: status.openHosts,
      hostsWaiting: Math.max(0, status.openHosts - parts.hostsInPlace),
      slowHosts: parts.slowHosts,
      pace: paceReport(parts.pace),
      lastMinute: record.lastMinute,
      today: story.urls,
      probes,
    },
    shipping: shippingPart(parts),
    errors: { today: story.blames, latest: story.errors },
    versions: versionsPart(parts),
    releases: releasesReport(config.home, policyWords(config.releases)),
    lastEnds: story.lastEnds,
  } as const;
  return { ...report, words: stateWords(report) };
}

export function limitReport({ resetsAt, ...usage }: LimitUsage): LimitReport {
  return { ...usage, resetsAt: resetsAt?.toISOString() ?? null };
}

function paceReport(asked: AskedPace | null): PaceReport | null {
  if (asked === null) return null;
  const { pace, places, since, reason } = asked;
  return { pace, places, since: since.toISOString(), reason };
}

export const fingerprintOf = (publicKey: string | null) => publicKey?.slice(0, fingerprintLength) ?? null;

function stateOf({ status, paused, draining }: RunningParts): StatusReport["state"] {
  if (draining !== null) return "draining";
  if (paused !== null) return "paused";
  if (!status.connected) return "not-connected";
  return status.openHosts > 0 ? "crawling" : "waiting";
}

function crawlerPart({ config, status, record, publicKey }: RunningParts): StatusReport["crawler"] {
  return {
    name: status.name,
    id: status.crawlerId,
    home: config.home,
    processId: process.pid,
    startedAt: record.startedAt.toISOString(),
    fingerprint: fingerprintOf(publicKey),
    publicAddress: config.publicAddress ?? record.welcome?.seenAddress ?? null,
  };
}

function coordinatorPart({ config, record }: RunningParts): StatusReport["coordinator"] {
  const userAgent = record.welcome?.userAgent ?? null;
  return {
    url: config.coordinatorUrl,
    contactPage: userAgent === null ? null : (contactPageOf(userAgent)?.href ?? null),
    userAgent,
    connectedSince: record.connectedSince?.toISOString() ?? null,
    notConnectedSince: record.notConnectedSince?.toISOString() ?? null,
    notConnectedBecause: record.downReason,
  };
}

function shippingPart({ status, spoolBytes, spoolMostBytes }: RunningParts): StatusReport["shipping"] {
  const { pages, fetchedBytes, bodyBytes, shippedBytes, timesSmaller, spooledResults } = status;
  const counted = { pages, fetchedBytes, bodyBytes, shippedBytes, timesSmaller };
  return { ...counted, waitingResults: spooledResults, spoolBytes, spoolMostBytes };
}

function versionsPart({ softwareVersion, dock, record }: RunningParts): StatusReport["versions"] {
  const release = dock?.helloParts.release;
  return {
    crawler: softwareVersion,
    release: release?.version ?? null,
    dock: release?.dockVersion ?? null,
    node: process.versions.node,
    protocol: record.welcome?.protocolVersion ?? null,
  };
}

// The state of a running crawler in a plain sentence.

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
      return sentence(`Connected, with nothing open${because(holdingBack[0])}`);
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

// What HOME/releases says of the releases that run here or do not, for a look from outside: nothing is set aside.

const maxFileBytes = 1024 * 1024;
const mostListed = 20;

/** Null when no dock has run here, or what it wrote cannot be read. `policy`: the host's, in words. */
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

/** Null when there is none that can be read. */
export function readReleaseState(home: string): ReleaseState | null {
  try {
    const path = join(home, "releases", "state.json");
    if (statSync(path).size > maxFileBytes) return null;
    return releaseState.safeParse(JSON.parse(readFileSync(path, "utf8"))).data ?? null;
  } catch {
    return null;
  }
}

/** What takes the place of the current one if that is not well. */
function previousOf(state: ReleaseState): string | null {
  return (isWatched(state) ? state.good : state.previous)?.version ?? null;
}

// Amounts and times as people read them.

/** `1 site`, `12,000 sites`; `many` where an "s" does not do. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** `4 min`, `3 h 20 min`, `2 days`. */
export function durationInWords(ms: number): string {
  const minutes = Math.round(Math.max(0, ms) / 60_000);
  if (minutes < 1) return `${Math.round(Math.max(0, ms) / 1000)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** `2026-11-22 12:40 UTC`. */
export function minuteOf(at: string): string {
  return `${at.slice(0, 16).replace("T", " ")} UTC`;
}

export function amountInWords(amount: number, unit: string): string {
  if (unit === "bytes") return bytesInWords(amount);
  const rounded = Number.isInteger(amount) ? amount : Math.round(amount * 100) / 100;
  return `${rounded.toLocaleString("en")} ${unit}`.trim();
}

/** `slow down: 4 sites at a time since 2026-11-22 12:40 UTC (2 host slices due or in hand, under 4: …)`. */
export function paceInWords({ pace, places, since, reason }: PaceReport): string {
  const allowed =
    places === null ? "as many sites at a time as the limits allow" : `${plural(places, "site")} at a time`;
  return `${pace.replace("-", " ")}: ${allowed}, since ${minuteOf(since)} (${reason})`;
}
