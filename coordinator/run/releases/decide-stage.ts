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

/** How long a stage has to run well, unless the operator says otherwise. */
export const defaultSoakMinutes = 60;

/** The second stage's share of the fleet. */
export const automaticPercent = 5;

/** A swap, or a network that comes back, takes a crawler away for less than this. */
const goneAfterMs = 600_000;

/** More of the stage's crawlers return or are gone than of the others, by so much. */
const worseMargin = 0.1;

/** More fetches fail by the crawler's fault, by so much; asked only from so many fetches on. */
const failureMargin = 0.02;

const leastFetches = 50;

export interface WatchedCrawler {
  readonly name: string;
  readonly inStage: boolean;
  /** Null: it was not offered. */
  readonly offeredAt: Date | null;
  readonly state: ReleaseState | null;
  readonly reportedAt: Date | null;
  readonly reason: string;
  /** Null: it is connected. */
  readonly offlineSince: Date | null;
  /** Since the stage began, and those of them that failed by the fault of the crawler or of our software. */
  readonly fetches: number;
  readonly failures: number;
}

export interface StageDecision {
  /** `elsewhere`: the first crawler did badly, or says nothing; another one is to be the first. */
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

/** The stage is one crawler, nobody was tried before it, and somebody else is there. */
function mayTryAnother({ crawlers }: Watch): boolean {
  const tried = crawlers.filter(({ offeredAt, inStage }) => inStage || offeredAt !== null);
  return tried.length === 1 && crawlers.length > 1;
}

/** Offered, and neither put off nor turned down by its partner or its supervisor. */
function takesIt({ offeredAt, state }: WatchedCrawler): boolean {
  return offeredAt !== null && (state === null || state === "running");
}

/** How many of so many may be odd, or lie. */
const spare = (count: number) => (count < 3 ? 0 : Math.max(1, Math.floor(count * worseMargin)));

/** Of all who were offered it, in this stage or as the first before: what two say of themselves is no single odd machine. */
function returnedWords(
  crawlers: readonly WatchedCrawler[],
  members: readonly WatchedCrawler[],
): string | null {
  const tried = crawlers.filter(
    (one) => takesIt(one) || (one.offeredAt !== null && one.state === "returned"),
  );
  const returned = tried.filter(({ state }) => state === "returned");
  if (!returned.some(({ inStage }) => inStage) || returned.length <= spare(tried.length)) return null;
  // Of a stage of many in a larger fleet one is not enough, however few have taken it so far.
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

/** Without those who fail most, as many as may be odd, on either side: nobody's count outweighs the others'. */
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
  // Who runs it since the stage before has yet to run it through this one, and the new ones have to get it.
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
