/** Builds the report of a crawler, and the parts that are known whether or not it runs. */
import { join } from "node:path";
import { jsonIn } from "../core/json.ts";
import { isWatched, type ReleaseState, releaseState } from "../core/release-state.ts";
import { bytesInWords, type LimitUsage } from "../limits/limit-usage.ts";
import type { LimitReport, PaceReport, ReleasesReport, StatusReport } from "./status-report.ts";

const fingerprintLength = 12;

export function limitReport({ resetsAt, ...usage }: LimitUsage): LimitReport {
  return { ...usage, resetsAt: resetsAt?.toISOString() ?? null };
}

/** `publicKey` is raw Ed25519 in base64url, or null without one. */
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

// Reads from HOME/releases which releases run here or not, without changing anything.

const maxFileBytes = 1024 * 1024;
const mostListed = 20;

/** Returns null when no supervisor ran here or its file is unreadable. `policy` is the host's, as text. */
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

/** Returns null when there is no readable state. */
export const readReleaseState = (home: string): ReleaseState | null =>
  jsonIn(join(home, "releases", "state.json"), maxFileBytes, releaseState);

/** The release that replaces the current one if that fails. */
function previousOf(state: ReleaseState): string | null {
  return (isWatched(state) ? state.good : state.previous)?.version ?? null;
}

// Formats amounts and times for people.

/** Example: `1 site`, `12,000 sites`; pass `many` for irregular plurals. */
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
