/**
 * A release that moves by itself: one crawler → 5 % → all. It moves on when those in the stage who took it have run it
 * for the soak time in good order. It is held when they do worse than the others: they return from it, are gone, or fail
 * by their own fault.
 *
 * What crawlers say of themselves cannot be checked, and some machine is always odd, so none decides alone: a first
 * crawler that does badly is followed by another one, and in a larger stage a tenth may do badly, be silent or come late
 * (one at least, from three on). A fleet in which nobody is left to ask is held by one.
 */
import type { ReleaseState } from "./staging.ts";

export const defaultSoakMinutes = 60;

/** The second stage's share of the fleet, in percent. */
export const automaticPercent = 5;

/** A restart or a network failure takes a crawler away for less time. */
const goneAfterMs = 600_000;

/** The tolerated excess of the stage's share of crawlers that returned or are gone. */
const worseMargin = 0.1;

/** The tolerated excess of fetches that fail by the crawler's fault, checked from a minimum of fetches on. */
const failureMargin = 0.02;

const leastFetches = 50;

export interface WatchedCrawler {
  readonly name: string;
  readonly inStage: boolean;
  /** Null when it was not offered. */
  readonly offeredAt: Date | null;
  readonly state: ReleaseState | null;
  readonly reportedAt: Date | null;
  readonly reason: string;
  /** Null while it is connected. */
  readonly offlineSince: Date | null;
  /** Fetches since the stage began, and those that failed by the fault of the crawler or our software. */
  readonly fetches: number;
  readonly failures: number;
}

export interface StageDecision {
  /** `elsewhere`: the first crawler did badly or is silent, so another one becomes the first. */
  readonly type: "stay" | "advance" | "elsewhere" | "stop";
  readonly words: string;
}

interface Watch {
  readonly crawlers: readonly WatchedCrawler[];
  readonly stageSince: Date;
  readonly soakMinutes: number;
  readonly now: Date;
}

export function decideStage(watch: Watch): StageDecision {
  const { crawlers } = watch;
  const members = crawlers.filter(({ inStage }) => inStage);
  const others = crawlers.filter(({ inStage }) => !inStage);
  const taking = members.filter(takesIt);
  const worse =
    returnedWords(crawlers, members) ?? goneWords(taking, others, watch) ?? failureWords(taking, others);
  if (worse !== null) return { type: mayTryAnother(watch) ? "elsewhere" : "stop", words: worse };
  const decided = soaked(taking, watch);
  return decided.type === "elsewhere" && !mayTryAnother(watch) ? { ...decided, type: "stay" } : decided;
}

/** True when the stage is one crawler, no other was tried, and another is available. */
function mayTryAnother({ crawlers }: Watch): boolean {
  const tried = crawlers.filter(({ offeredAt, inStage }) => inStage || offeredAt !== null);
  return tried.length === 1 && crawlers.length > 1;
}

/** Offered, and neither delayed nor refused by its partner or supervisor. */
function takesIt({ offeredAt, state }: WatchedCrawler): boolean {
  return offeredAt !== null && (state === null || state === "running");
}

/** How many outliers or false reports are tolerated. */
const spare = (count: number) => (count < 3 ? 0 : Math.max(1, Math.floor(count * worseMargin)));

/** Counts all crawlers that were offered it, in this stage or before: two reports are no single outlier. */
function returnedWords(
  crawlers: readonly WatchedCrawler[],
  members: readonly WatchedCrawler[],
): string | null {
  const tried = crawlers.filter(
    (one) => takesIt(one) || (one.offeredAt !== null && one.state === "returned"),
  );
  const returned = tried.filter(({ state }) => state === "returned");
  if (!returned.some(({ inStage }) => inStage) || returned.length <= spare(tried.length)) return null;
  // In a stage of many within a larger fleet, one report is not enough, however few have taken it.
  if (returned.length === 1 && members.length > 1 && crawlers.length > members.length) return null;
  const [first] = returned;
  const more = returned.length === 1 ? "" : `, and ${returned.length - 1} more of ${tried.length}`;
  return `${first?.name} rolled back from it: ${first?.reason}${more}`;
}

function goneWords(
  taking: readonly WatchedCrawler[],
  others: readonly WatchedCrawler[],
  { stageSince, now }: Watch,
): string | null {
  const latest = now.getTime() - goneAfterMs;
  const goneSince = ({ offlineSince }: WatchedCrawler, since: Date) =>
    offlineSince !== null && offlineSince >= since && offlineSince.getTime() <= latest;
  const gone = taking.filter((one) => goneSince(one, one.offeredAt ?? stageSince));
  const othersGone = others.filter((one) => goneSince(one, stageSince));
  if (gone.length <= spare(taking.length)) return null;
  if (share(gone.length, taking.length) <= share(othersGone.length, others.length) + worseMargin) return null;
  const names = gone.map(({ name }) => name).slice(0, 5);
  return (
    `${gone.length} of ${taking.length} that took it have been offline for over ${goneAfterMs / 60_000} ` +
    `minutes (${names.join(", ")}), among the others ${othersGone.length} of ${others.length}`
  );
}

/** Ignores the worst crawlers on both sides, as many as are tolerated, so that no single count dominates. */
function failureWords(taking: readonly WatchedCrawler[], others: readonly WatchedCrawler[]): string | null {
  const running = withoutWorst(taking.filter(({ state }) => state === "running"));
  const compared = withoutWorst(others);
  const [fetches, failures] = [sum(running, "fetches"), sum(running, "failures")];
  const [otherFetches, otherFailures] = [sum(compared, "fetches"), sum(compared, "failures")];
  if (fetches < leastFetches) return null;
  if (share(failures, fetches) <= share(otherFailures, otherFetches) + failureMargin) return null;
  return `${failures} of ${fetches} fetches failed through crawlers that run it, among the others ${otherFailures} of ${otherFetches}`;
}

function withoutWorst(crawlers: readonly WatchedCrawler[]): readonly WatchedCrawler[] {
  return crawlers.toSorted((a, b) => b.failures - a.failures).slice(spare(crawlers.length));
}

function soaked(taking: readonly WatchedCrawler[], { stageSince, soakMinutes, now }: Watch): StageDecision {
  const running = taking.filter(({ state }) => state === "running");
  const silent = taking.filter(({ state, offlineSince }) => state === null && offlineSince === null);
  const overdue = silent.filter(({ offeredAt }) => minutesSince(offeredAt ?? now, now) >= soakMinutes);
  const [waiting] = silent;
  const isDue = silent.length === overdue.length && silent.length <= spare(taking.length);
  if (waiting !== undefined && !isDue) {
    const words = `${waiting.name} was offered it and has not yet reported that it runs well`;
    return { type: overdue.length > 0 && taking.length === 1 ? "elsewhere" : "stay", words };
  }
  if (running.length === 0) return { type: "stay", words: "no crawler runs it yet" };
  // Crawlers from the previous stage must run it through this one, and new ones must get it first.
  const starts = running.map(({ reportedAt }) => (reportedAt ?? now).getTime()).sort((a, b) => a - b);
  const latestStart = Math.max(stageSince.getTime(), starts.at(-1 - spare(running.length)) ?? 0);
  const soakedMinutes = minutesSince(new Date(latestStart), now);
  const words = `${running.length} run it, without problems for ${soakedMinutes} of ${soakMinutes} minutes`;
  return { type: soakedMinutes >= soakMinutes ? "advance" : "stay", words };
}

const minutesSince = (at: Date, now: Date) => Math.floor((now.getTime() - at.getTime()) / 60_000);

const share = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);

function sum(crawlers: readonly WatchedCrawler[], field: "fetches" | "failures"): number {
  return crawlers.reduce((total, crawler) => total + crawler[field], 0);
}
