/** The report for a terminal: plain sentences, bars of characters, lines that fit the width. Pure. */
import { plainWords } from "#protocol/fields";
import { bytesInWords } from "../limits/limit-usage.ts";
import { type GroupedError, groupedErrors } from "./grouped-errors.ts";
import { durationInWords, minuteOf, paceInWords, plural } from "./in-words.ts";
import { type LimitLine, limitLines } from "./limit-lines.ts";
import type { StatusReport, UrlCounts } from "./status-report.ts";

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

function head({ crawler, coordinator, versions, words, at }: StatusReport): string[] {
  const link =
    coordinator.connectedSince === null
      ? `${coordinator.url ?? "none"} (not connected: ${coordinator.notConnectedBecause})`
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
    labelled("folder", crawler.home),
  ];
}

function versionLines({ crawler, release, dock, node, protocol }: StatusReport["versions"]): string[] {
  if (crawler === null) return [];
  const parts = [
    release === null ? `crawler ${crawler} (no release)` : `release ${release}`,
    dock === null ? "no dock" : `dock ${dock}`,
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
  const { current, isWatched, offeredSince, policy, notTaken, returned } = known;
  return [
    labelled("release", `${current ?? "none yet"}${isWatched ? " (new, and watched)" : ""}`),
    ...(policy === null ? [] : [labelled("your policy", policy)]),
    ...(offeredSince === null ? [] : [labelled("offered", `another one since ${minuteOf(offeredSince)}`)]),
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
