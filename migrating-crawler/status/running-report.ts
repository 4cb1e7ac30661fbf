/** The report of a crawler that runs, from what its rooms know. */
import { contactPageOf } from "#protocol/user-agent";
import type { LimitUsage } from "../limits/limit-usage.ts";
import type { Paused } from "../limits/pause.ts";
import type { AskedPace } from "../limits/work-pace.ts";
import type { CrawlerStatus } from "../link/crawler-status.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import type { DockLine } from "../supervisor/dock-line.ts";
import { policyWords } from "../supervisor/release-policy.ts";
import { releasesReport } from "./releases-report.ts";
import { stateWords } from "./state-words.ts";
import type { StatusRecord } from "./status-record.ts";
import {
  type LimitReport,
  type PaceReport,
  type SinceAndWhy,
  type StatusReport,
  sinceAndWhy,
  statusVersion,
} from "./status-report.ts";

export interface RunningParts {
  readonly config: CrawlerConfig;
  readonly status: CrawlerStatus;
  readonly usage: readonly LimitUsage[];
  readonly notTold: readonly string[];
  readonly record: StatusRecord;
  readonly paused: Paused | null;
  readonly draining: SinceAndWhy | null;
  /** Open hosts that take a place of the limit on hosts. */
  readonly hostsInPlace: number;
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
    holdingBack: status.holdingBack.slice(0, mostHoldingBack),
    limits: parts.usage.map(limitReport),
    notTold,
    work: {
      openHosts: status.openHosts,
      hostsWaiting: Math.max(0, status.openHosts - parts.hostsInPlace),
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
