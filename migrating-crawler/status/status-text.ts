/** The report for a terminal: plain sentences, bars of characters, lines that fit the width. Pure. */
import { plainWords } from "#protocol/fields";
import { bytesInWords } from "../limits/limit-usage.ts";
import { amountInWords, durationInWords, minuteOf, paceInWords, plural } from "./running-report.ts";
import type { ErrorReport, LimitReport, StatusReport, UrlCounts } from "./status-report.ts";

const barCharacters = 20;
const mostErrors = 8;
const mostEnds = 3;
const labelCharacters = 18;

/** Lines without their ends. Characters that would steer a terminal are gone. */
export function statusText(report: StatusReport): string[] {
  const sections = [
    head(report),
    holding(report),
    limits(report),
    work(report),
    errors(report),
    releases(report),
    ends(report),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .flatMap((lines, index) => (index === 0 ? lines : ["", ...lines]))
    .map(plainWords);
}

/** One line, for where nothing can be drawn over. */
export function statusLine({ at, words, limits, errors }: StatusReport): string {
  const pages = limits.find(({ limit }) => limit === "pagesPerDay");
  const bytes = limits.find(({ limit }) => limit === "bytesPerDay");
  const today = `today ${plural(pages?.used ?? 0, "page")}, ${bytesInWords(bytes?.used ?? 0)}`;
  const failed = Object.values(errors.today).reduce((sum, count) => sum + count, 0);
  return plainWords(`${minuteOf(at)}  ${words} ${today}, ${plural(failed, "error")}`);
}

function head(report: StatusReport): string[] {
  const { crawler, coordinator, versions, words, at } = report;
  const link =
    coordinator.connectedSince === null
      ? `${coordinator.url ?? "none"} (not connected${forHowLong(coordinator.notConnectedSince, at)}: ${coordinator.notConnectedBecause})`
      : `${coordinator.url}, connected for ${since(coordinator.connectedSince, at)}`;
  const identity = crawler.fingerprint === null ? "none of its own" : `${crawler.fingerprint}…`;
  const address = crawler.publicAddress === null ? "" : `, seen at ${crawler.publicAddress}`;
  return [
    `${crawler.name ?? "crawler"}: ${words}`,
    "",
    labelled("coordinator", link),
    ...(coordinator.contactPage === null ? [] : [labelled("who and why", coordinator.contactPage)]),
    labelled("identity", `${identity}${address}`),
    ...versionLines(versions),
    ...(crawler.startedAt === null
      ? []
      : [labelled("runs", `for ${since(crawler.startedAt, at)}, process ${crawler.processId}`)]),
    ...(report.pageUrl ? [labelled("page", report.pageUrl)] : []),
    labelled("contributed", contributedWords(report)),
    labelled("folder", crawler.home),
  ];
}

/** "929 pages, of 950 URLs that were asked for". */
export function contributedWords({ contribution: { total } }: Pick<StatusReport, "contribution">): string {
  return `${plural(total.pages, "page")}, of ${plural(total.urls, "URL")} that were asked for`;
}

function versionLines({ crawler, release, dock, node, protocol }: StatusReport["versions"]): string[] {
  if (crawler === null) return [];
  const parts = [
    release === null ? `crawler ${crawler} (no release)` : `release ${release}`,
    dock === null ? "no supervisor" : `supervisor ${dock}`,
    `Node ${node}`,
    protocol === null ? "" : `protocol ${protocol}`,
  ];
  return [labelled("versions", parts.filter((part) => part !== "").join(", "))];
}

function holding({ holdingBack, notTold }: StatusReport): string[] {
  const lines = [...holdingBack, ...notTold].map((words) => `  - ${words}`);
  return lines.length === 0 ? ["Nothing holds it back."] : ["What holds it back right now:", ...lines];
}

function limits(report: StatusReport): string[] {
  const lines = limitLines(report.limits, new Date(report.at));
  return lines.length === 0 ? [] : ["Your limits:", ...lines.map(limitText)];
}

function limitText({ name, used, share, resets, holdingBack }: LimitLine): string {
  const mark = holdingBack === "" ? "" : "  <- holds it back";
  const shown = [used, resets].filter((part) => part !== "").join(", ");
  return `  ${name.padEnd(labelCharacters)}${bar(share)} ${shown}${mark}`.trimEnd();
}

function bar(share: number | null): string {
  if (share === null) return " ".repeat(barCharacters + 2);
  const full = Math.round(share * barCharacters);
  return `[${"#".repeat(full)}${".".repeat(barCharacters - full)}]`;
}

function work({ work: done, shipping }: StatusReport): string[] {
  if (done === null || shipping === null) return [];
  const { probes } = done;
  const smaller =
    shipping.timesSmaller === null || shipping.timesSmaller < 1
      ? ""
      : `, ${shipping.timesSmaller} times smaller than the pages`;
  return [
    labelled("last minute", countWords(done.lastMinute)),
    labelled("today", countWords(done.today)),
    labelled(
      "politeness",
      `${plural(done.openHosts, "site")} open, ${done.hostsWaiting} of them left alone for a while`,
    ),
    ...done.slowHosts.map(({ host, words }) => labelled("", `${host}: ${words}`)),
    ...(done.pace === null ? [] : [labelled("pace", paceInWords(done.pace))]),
    labelled(
      "probes",
      `${plural(probes.asked, "probe")} asked for, ${probes.measured} measured, ${probes.notAllowed} not allowed`,
    ),
    labelled("shipped", `${bytesInWords(shipping.shippedBytes)} since the start${smaller}`),
    labelled(
      "waits on disk",
      `${plural(shipping.waitingResults, "result")}, ${bytesInWords(shipping.spoolBytes)} of ${bytesInWords(shipping.spoolMostBytes)}`,
    ),
  ];
}

/** Kinds that did not happen are left out. */
export function countWords(counts: UrlCounts): string {
  const parts: [number, string][] = [
    [counts.fetched, "fetched"],
    [counts.unchanged, "unchanged"],
    [counts.redirected, "redirected"],
    [counts.httpErrors, "answered with an error"],
    [counts.refusedByRobots, "forbidden by robots.txt"],
    [counts.refusedAddresses, "at addresses that are not touched"],
    [counts.unsupported, "of a kind that is not indexed"],
    [counts.failed, "failed"],
  ];
  const named = parts.flatMap(([count, words]) =>
    count === 0 ? [] : [`${count.toLocaleString("en")} ${words}`],
  );
  return named.length === 0 ? "no URLs" : `${plural(counts.urls, "URL")}: ${named.join(", ")}`;
}

function errors({ errors: { today, latest } }: StatusReport): string[] {
  const { target, network, crawler, us } = today;
  const counts = `Errors today: ${target} of sites, ${network} of the network, ${crawler} of this machine, ${us} of our software.`;
  return [counts, ...groupedErrors(latest).slice(0, mostErrors).map(errorText)];
}

function errorText({ at, blame, host, code, words, times }: GroupedError): string {
  const often = times === 1 ? "" : `, ${times} times in a row`;
  return `  ${minuteOf(at)}  ${blameWords[blame]}  ${host}: ${words} (${code})${often}`;
}

export const blameWords = {
  target: "site",
  network: "network",
  crawler: "this machine",
  us: "our software",
} as const;

function releases({ releases: known }: StatusReport): string[] {
  if (known === null) return [];
  const { current, isWatched, offeredSince, takesNothing, policy, notTaken, returned } = known;
  return [
    labelled("release", `${current ?? "none yet"}${isWatched ? " (new, and watched)" : ""}`),
    ...(policy === null ? [] : [labelled("your policy", policy)]),
    ...(offeredSince === null ? [] : [labelled("offered", `another one since ${minuteOf(offeredSince)}`)]),
    ...(takesNothing === null
      ? []
      : [labelled("updates", `none since ${minuteOf(takesNothing.since)}: ${takesNothing.reason}`)]),
    ...notTaken
      .slice(0, mostEnds)
      .map(({ version, state, reason }) => labelled("not taken", `${version} (${state}): ${reason}`)),
    ...returned
      .slice(0, mostEnds)
      .map(({ version, at, reason }) =>
        labelled("went back", `from ${version} at ${minuteOf(at)}: ${reason}`),
      ),
  ];
}

function ends({ lastEnds }: StatusReport): string[] {
  if (lastEnds.length === 0) return [];
  return [
    "Ends that nobody had asked for:",
    ...lastEnds.slice(0, mostEnds).map(({ at, reason }) => `  ${minuteOf(at)}  ${reason}`),
  ];
}

const labelled = (label: string, words: string) => `${label.padEnd(labelCharacters)}${words}`;
const since = (then: string, now: string) => durationInWords(Date.parse(now) - Date.parse(then));

// Errors that say the same, one after the other, as one with a count: a site that is down would fill the list.

export interface GroupedError extends ErrorReport {
  /** How often in a row; `at` is the last time. */
  readonly times: number;
}

/** In the order of the errors, the latest first. */
export function groupedErrors(errors: readonly ErrorReport[]): GroupedError[] {
  const groups: GroupedError[] = [];
  for (const error of errors) {
    const last = groups.at(-1);
    if (last === undefined || !saysTheSame(last, error)) groups.push({ ...error, times: 1 });
    else groups[groups.length - 1] = { ...last, times: last.times + 1 };
  }
  return groups;
}

function saysTheSame(one: ErrorReport, other: ErrorReport): boolean {
  return one.host === other.host && one.code === other.code && one.words === other.words;
}

// The host's limits as people read them: a name, what is used against what may be, a share for the bar.

export interface LimitLine {
  readonly name: string;
  /** `1.2 GiB of 50 GiB`. */
  readonly used: string;
  /** Of the cap, 0 to 1; null: there is no cap, or use is not measured. */
  readonly share: number | null;
  /** `starts over in 3 h`; empty: it does not. */
  readonly resets: string;
  /** Empty: nothing. */
  readonly holdingBack: string;
}

/** Known ones read well; one that is not, still reads. */
const names: Readonly<Record<string, string>> = {
  pagesPerDay: "Pages today",
  bytesPerDay: "Bytes today",
  bytesPerMonth: "Bytes this month",
  kilobytesPerSecond: "Bytes per second",
  concurrentHosts: "Sites at a time",
  openConnections: "Connections",
  cpuShare: "Processor",
  memoryBytes: "Memory",
  diskBytes: "Disk",
  hours: "Hours",
  onlyWhenIdle: "Only when idle",
};

/** Limits that are switched off and hold nothing back say nothing; a pause has no amount, and is told of elsewhere. */
export function limitLines(limits: readonly LimitReport[], now: Date): LimitLine[] {
  return limits
    .filter(({ limit }) => limit !== "pause")
    .filter(
      ({ used, cap, resetsAt, holdingBack }) =>
        holdingBack !== "" || cap !== null || (used ?? 0) > 0 || resetsAt !== null,
    )
    .map((limit) => ({
      name: names[limit.limit] ?? limit.limit,
      used: usedWords(limit),
      share: shareOf(limit),
      resets: resetWords(limit, now),
      holdingBack: limit.holdingBack,
    }));
}

function usedWords({ used, cap, unit, limit }: LimitReport): string {
  if (limit === "hours") return "";
  if (used === null) return cap === null ? "" : `at most ${amountInWords(cap, unit)}`;
  if (cap === null) return `${amountInWords(used, unit)}, no limit`;
  const ofUnit = unit === "bytes" ? unit : "";
  return `${amountInWords(used, ofUnit)} of ${amountInWords(cap, unit)}`;
}

function shareOf({ used, cap }: LimitReport): number | null {
  if (used === null || cap === null) return null;
  return cap === 0 ? 1 : Math.min(1, used / cap);
}

function resetWords({ resetsAt, limit, holdingBack }: LimitReport, now: Date): string {
  if (resetsAt === null) return "";
  const left = durationInWords(Date.parse(resetsAt) - now.getTime());
  if (limit === "hours") return holdingBack === "" ? `open for ${left} more` : `opens in ${left}`;
  return `starts over in ${left}`;
}

const forHowLong = (then: string | null, at: string): string =>
  then === null ? "" : ` for ${since(then, at)}`;
