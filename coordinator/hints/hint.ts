/**
 * Hints: what sites and their hubs say has changed (IndexNow, WebSub). A hint moves the next fetch of its URL forward, as far
 * as its host is heard, and is an order to nobody: budget, pace, robots.txt and opt-outs hold as for every fetch. What the
 * fetch finds decides how far the host is heard from then on.
 */

import { howMany } from "#core/format";

export const hintSources = ["indexnow", "websub"] as const;

export type HintSource = (typeof hintSources)[number];

/** Keys of a host that begin to be checked in a day: each costs the host a fetch, whoever asks for it. */
export const keysPerHostAndDay = 3;

/** A hint that nobody could act on, or a key that was not fetched, is given up after so long. */
export const hintDays = 3;

/** A wrong key is refused at once for so long; then it may be looked at again. */
export const wrongKeyHours = 24;

/** Right and wrong hints of late, of one host and source. */
export interface HintRecord {
  readonly recentRight: number;
  readonly recentWrong: number;
}

/** Who has told nothing yet counts as if so many hints had been right. */
const benefitOfDoubt = 4;

/** Below it, one hint a day is heard, by which a host can earn its hearing back. */
const leastTrust = 0.1;

/** 0 to 1: the share of hints that are expected to be right. */
export function trustIn({ recentRight, recentWrong }: HintRecord): number {
  return (recentRight + benefitOfDoubt) / (recentRight + recentWrong + benefitOfDoubt);
}

/** How many hints of a host are taken in a day. */
export function hintsHeard(record: HintRecord, perHostAndDay: number): number {
  const trust = trustIn(record);
  if (trust < leastTrust) return Math.min(1, perHostAndDay);
  return Math.ceil(trust * perHostAndDay);
}

/** Beyond so many, older ones count half: a site that was mended is heard again. */
export const recentHints = 100;

/** Of a URL, before the hint and after the fetch that followed. */
export interface HintedVisit {
  /** Null: it was not fetched before. */
  readonly wasOutcome: string | null;
  readonly wasDigest: string | null;
  readonly outcome: string;
  readonly status: number | null;
  readonly digest: string | null;
}

/** Null: what was found says nothing of the hint, such as a site that did not answer. */
export function wasRight(visit: HintedVisit): boolean | null {
  const { outcome } = visit;
  const isPage = outcome === "fetched" || outcome === "unchanged";
  const isGone =
    outcome === "soft-not-found" || (outcome === "http-error" && [404, 410].includes(visit.status ?? 0));
  const isTold = isPage || isGone || outcome === "redirected";
  if (!isTold) return null;
  // A URL that nobody had fetched is news, unless nothing is there.
  if (visit.wasOutcome === null) return !isGone;
  const wasPage = visit.wasOutcome === "fetched" || visit.wasOutcome === "unchanged";
  if (wasPage && isPage) return outcome === "fetched" && visit.digest !== visit.wasDigest;
  return outcome !== visit.wasOutcome && (wasPage || !isGone);
}

// What is told of a host's hints, in lists and in `who`.

export interface HostHints {
  readonly host: string;
  readonly source: HintSource;
  readonly received: number;
  readonly taken: number;
  readonly right: number;
  readonly wrong: number;
  /** Named and left out: beyond what is heard, under a wrong key, or never looked at in time. */
  readonly dropped: number;
  readonly waiting: number;
  /** 0 to 1. */
  readonly trust: number;
  readonly lastAt: string;
  readonly keys: readonly HintKeyReport[];
  readonly feeds: readonly FeedReport[];
}

export interface HintKeyReport {
  readonly location: string;
  /** Null: everything of the host. */
  readonly folder: string | null;
  readonly state: "pending" | "good" | "wrong";
  readonly words: string;
}

export interface FeedReport {
  readonly feed: string;
  readonly hub: string;
  readonly state: "found" | "asked" | "active" | "denied" | "failed";
  readonly words: string;
  readonly leaseEndsAt: string | null;
  readonly deliveries: number;
  /** Calls with no good signature. */
  readonly forged: number;
}

/** "full daily limit", "60 % of the daily limit", "one per day, since most were wrong". */
export function hearingWords({ trust }: Pick<HostHints, "trust">): string {
  if (trust < leastTrust) return "one per day, since most were wrong";
  return trust >= 0.995 ? "full daily limit" : `${Math.round(100 * trust)} % of the daily limit`;
}

/** "indexnow: 12 URLs received, 10 accepted, 7 right, 2 wrong; full daily limit" */
export function hintWords(one: HostHints): string {
  const { source, received, taken, right, wrong } = one;
  return `${source}: ${howMany(received, "URL")} received, ${figure(taken)} accepted, ${figure(right)} right, ${figure(wrong)} wrong; ${hearingWords(one)}`;
}

export function keyWords({ location, folder, state, words }: HintKeyReport): string {
  const of = folder === null ? "" : ` for ${folder}`;
  return `key at ${location}${of}: ${state}${words === "" ? "" : ` (${words})`}`;
}

export function feedWords({ feed, hub, state, words, leaseEndsAt, forged }: FeedReport): string {
  const until = leaseEndsAt === null ? "" : ` until ${leaseEndsAt.slice(0, 16).replace("T", " ")} UTC`;
  const bad = forged === 0 ? "" : `; ${figure(forged)} forged calls`;
  return `feed ${feed} at ${hub}: ${state}${until}${words === "" ? "" : ` (${words})`}${bad}`;
}

/** All feeds that name a hub. */
export const statesOfFeeds = (feeds: Readonly<Record<FeedReport["state"], number>>): string =>
  `${figure(feeds.active)} subscribed, ${figure(feeds.asked)} requested, ${figure(feeds.found)} not subscribed, ${figure(feeds.denied + feeds.failed)} refused`;

const figure = (many: number) => many.toLocaleString("en-GB");
