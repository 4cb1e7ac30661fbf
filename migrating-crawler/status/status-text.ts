/** Renders the report for a terminal: plain sentences, bars of characters, lines that fit the width. Pure functions. */
import { plainWords } from "#protocol/fields";
import { bytesInWords } from "../limits/limit-usage.ts";
import type { ErrorReport, UrlCounts } from "./status-history.ts";
import {
  amountInWords,
  durationInWords,
  type LimitReport,
  minuteOf,
  paceInWords,
  plural,
  type StatusReport,
} from "./status-report.ts";

const barCharacters = 20;
const mostErrors = 8;
const mostEnds = 3;
const labelCharacters = 18;

/** Returns lines without line ends and without control characters. */
export function statusText(report: StatusReport): string[] {
  const sections = [
    head(report),
    holding(report),
    limits(report),
    factLines(workFacts(report)),
    errors(report),
    factLines(versionFacts(report)),
    ends(report),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .flatMap((lines, index) => (index === 0 ? lines : ["", ...lines]))
    .map(plainWords);
}

function head(report: StatusReport): string[] {
  return [
    `${report.crawler.name ?? "crawler"}: ${report.words}`,
    "",
    ...factLines(connectionFacts(report)),
    ...(report.pageUrl ? [labelled("page", report.pageUrl)] : []),
    labelled("contributed", contributedWords(report)),
  ];
}

// Formats the facts that the terminal and the local page share, so that they agree.

export type Fact = readonly [label: string, words: string | null];

export function connectionFacts({ coordinator, crawler, at }: StatusReport): readonly Fact[] {
  const { url, connectedSince, notConnectedSince, notConnectedBecause, contactPage, userAgent } = coordinator;
  const down = notConnectedSince === null ? "" : `, for ${since(notConnectedSince, at)}`;
  return [
    ["coordinator", url],
    [
      "link",
      connectedSince === null
        ? `${notConnectedBecause}${down}`
        : `connected for ${since(connectedSince, at)}`,
    ],
    ["who and why", contactPage],
    ["user-agent", userAgent],
    ["identity", crawler.fingerprint === null ? "none of its own" : `${crawler.fingerprint}…`],
    ["seen at", crawler.publicAddress],
  ];
}

export function workFacts({ work, shipping }: StatusReport): readonly Fact[] {
  if (work === null || shipping === null) return [];
  const { probes, pace } = work;
  return [
    ["last minute", countWords(work.lastMinute)],
    ["today", countWords(work.today)],
    [
      "politeness",
      `${plural(work.hostsWaiting, "open site is", "open sites are")} left alone for a while, as the site or good manners ask`,
    ],
    ...work.slowHosts.map(({ host, words }): Fact => [host, words]),
    ["pace", pace === null ? null : paceInWords(pace)],
    [
      "probes",
      `${plural(probes.asked, "probe")} asked for, ${probes.measured} measured, ${probes.notAllowed} not allowed`,
    ],
    [
      "shipped",
      `${bytesInWords(shipping.shippedBytes)} since the start, of pages of ${bytesInWords(shipping.bodyBytes)}`,
    ],
    [
      "waits on disk",
      `${plural(shipping.waitingResults, "result")}, ${bytesInWords(shipping.spoolBytes)} of ${bytesInWords(shipping.spoolMostBytes)}`,
    ],
  ];
}

export function versionFacts({ versions, releases, crawler, at }: StatusReport): readonly Fact[] {
  const { dock, node, protocol } = versions;
  const runs = versions.crawler === null ? "none yet" : `${versions.crawler}, started by hand`;
  return [
    [
      "release",
      releases?.current == null
        ? runs
        : `${releases.current}${releases.isWatched ? " (new, and watched)" : ""}`,
    ],
    ["your policy", releases?.policy ?? null],
    [
      "offered",
      releases?.offeredSince == null ? null : `another release since ${minuteOf(releases.offeredSince)}`,
    ],
    [
      "updates",
      releases?.takesNothing == null
        ? null
        : `none since ${minuteOf(releases.takesNothing.since)}: ${releases.takesNothing.reason}`,
    ],
    ...(releases?.notTaken ?? [])
      .slice(0, mostEnds)
      .map(({ version, state, reason }): Fact => ["not taken", `${version} (${state}): ${reason}`]),
    ...(releases?.returned ?? [])
      .slice(0, mostEnds)
      .map((back): Fact => ["went back", `from ${back.version} at ${minuteOf(back.at)}: ${back.reason}`]),
    [
      "under",
      versions.crawler === null
        ? null
        : `${dock === null ? "no supervisor" : `supervisor ${dock}`}, Node ${node ?? "?"}, protocol ${protocol ?? "not agreed on yet"}`,
    ],
    [
      "runs",
      crawler.startedAt === null ? null : `for ${since(crawler.startedAt, at)}, process ${crawler.processId}`,
    ],
    ["folder", crawler.home],
  ];
}

const factLines = (facts: readonly Fact[]) =>
  facts.flatMap(([label, words]) => (words === null || words === "" ? [] : [labelled(label, words)]));

/** Example: "929 pages, of 950 URLs that were asked for". */
export function contributedWords({ contribution: { total } }: Pick<StatusReport, "contribution">): string {
  return `${plural(total.pages, "page")}, of ${plural(total.urls, "URL")} that were asked for`;
}

function holding({ holdingBack, notTold }: StatusReport): string[] {
  const lines = [...holdingBack, ...notTold].map((words) => `  - ${words}`);
  return lines.length === 0 ? ["Nothing holds it back."] : ["Why it is idle:", ...lines];
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

function ends({ lastEnds }: StatusReport): string[] {
  if (lastEnds.length === 0) return [];
  return [
    "Ends that nobody had asked for:",
    ...lastEnds.slice(0, mostEnds).map(({ at, reason }) => `  ${minuteOf(at)}  ${reason}`),
  ];
}

const labelled = (label: string, words: string) => `${label.padEnd(labelCharacters - 1)} ${words}`;
const since = (then: string, now: string) => durationInWords(Date.parse(now) - Date.parse(then));

// Groups equal consecutive errors with a count, because one failing site would otherwise fill the list.

export interface GroupedError extends ErrorReport {
  readonly times: number;
}

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

// Formats the host's limits: a name, the use and the cap, and a share for the bar.

export interface LimitLine {
  readonly name: string;
  /** Example: `1.2 GiB of 50 GiB`. */
  readonly used: string;
  /** The used share of the cap, 0 to 1. Null if there is no cap or measurement. */
  readonly share: number | null;
  /** Example: `starts over in 3 h`. Empty if it does not. */
  readonly resets: string;
  readonly holdingBack: string;
}

/** Limits without an entry here are shown with the name of their setting. */
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

/** Leaves out limits that are off and block nothing, and pauses, which have no amount and are shown elsewhere. */
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
