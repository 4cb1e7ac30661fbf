/**
 * Decides which crawlers get which release: one crawler, then a share of the fleet, then all. The share follows from
 * the names of release and crawlers, so all coordinators pick the same crawlers, and each release starts with others.
 */

import type { CrawlerId } from "#core/ids";
import { mix32 } from "#core/random";
import type { CrawlerIdentity } from "../../place/crawlers/crawler.ts";

export type ReleaseStage = "none" | "one" | "percent" | "all";

/** The outcome of a release at a crawler, as reported by its supervisor (protocol/messages, crawler:release-report). */
export type ReleaseState = "refused" | "pinned" | "delayed" | "running" | "returned";

/** How many crawlers are in each state of a release, by the last reports of their supervisors. */
export type ReleaseCounts = Readonly<Record<ReleaseState | "offered", number>>;
export const noCounts: ReleaseCounts = {
  offered: 0,
  refused: 0,
  pinned: 0,
  delayed: 0,
  running: 0,
  returned: 0,
};

export interface StagedRelease {
  readonly version: string;
  /** Increases with every signing. */
  readonly sequence: number;
  readonly digest: string;
  readonly expiresAt: Date;
  readonly revoked: boolean;
  readonly trusted: boolean;
  readonly stage: ReleaseStage;
  readonly percent: number | null;
  readonly firstCrawlerId: CrawlerId | null;
  readonly stageSince: Date | null;
  /** The release advances automatically after this many good minutes. `null` means only by hand. */
  readonly soakMinutes: number | null;
}

export interface SupervisedCrawler extends CrawlerIdentity {
  readonly digest: string;
  /** The reports on the releases that it was offered, by version. */
  readonly reports: ReadonlyMap<string, ReleaseState | null>;
}

/** Minimum members of a share, so that two can outvote one outlier or false report. */
const leastInShare = 3;

export function stageMembers(
  release: Pick<StagedRelease, "stage" | "percent" | "digest" | "firstCrawlerId">,
  crawlers: readonly Pick<SupervisedCrawler, "crawlerId" | "name">[],
): ReadonlySet<CrawlerId> {
  const { stage, percent, firstCrawlerId } = release;
  if (stage === "all") return new Set(crawlers.map(({ crawlerId }) => crawlerId));
  const first = firstCrawlerId === null || stage === "none" ? [] : [firstCrawlerId];
  if (stage !== "percent" || percent === null) return new Set(first);
  const size = Math.max(leastInShare, Math.ceil((crawlers.length * percent) / 100));
  const ranked = rankedCrawlers(release.digest, crawlers).map(({ crawlerId }) => crawlerId);
  return new Set([...new Set([...first, ...ranked])].slice(0, size));
}

export function rankedCrawlers<Crawler extends { readonly name: string }>(
  digest: string,
  crawlers: readonly Crawler[],
): readonly Crawler[] {
  return crawlers
    .map((crawler) => ({ crawler, rank: rankOf(`${digest}/${crawler.name}`) }))
    .sort((a, b) => a.rank - b.rank || (a.crawler.name < b.crawler.name ? -1 : 1))
    .map(({ crawler }) => crawler);
}

interface ReleaseToMembers {
  readonly release: StagedRelease;
  readonly members: ReadonlySet<CrawlerId>;
}

/** Computes members once for all crawlers, because ranking the fleet for each crawler would take quadratic time. */
export function withMembers(
  releases: readonly StagedRelease[],
  crawlers: readonly Pick<SupervisedCrawler, "crawlerId" | "name">[],
): ReleaseToMembers[] {
  return releases.map((release) => ({ release, members: stageMembers(release, crawlers) }));
}

/**
 * Returns the newest release to offer to this crawler; null if it keeps its own. Older releases are not offered,
 * because its supervisor would refuse them. Nor is a release that it rolled back from, which its supervisor tries
 * again some hours later while it is served.
 */
export function releaseFor(
  crawler: SupervisedCrawler,
  staged: readonly ReleaseToMembers[],
  now: Date,
): StagedRelease | null {
  const releases = staged.map(({ release }) => release);
  const running = releases.filter(({ digest }) => digest === crawler.digest);
  const runningSequence = Math.max(0, ...running.map(({ sequence }) => sequence));
  const fitting = staged.filter(
    ({ release, members }) =>
      members.has(crawler.crawlerId) &&
      mayRun(release, now) &&
      release.sequence > runningSequence &&
      release.digest !== crawler.digest &&
      crawler.reports.get(release.version) !== "returned",
  );
  return fitting
    .map(({ release }) => release)
    .reduce<StagedRelease | null>(
      (newest, release) => (newest === null || release.sequence > newest.sequence ? release : newest),
      null,
    );
}

/** Whether the release is neither revoked nor expired, and a valid key signed it. */
export function mayRun(
  release: Pick<StagedRelease, "revoked" | "trusted" | "expiresAt">,
  now: Date,
): boolean {
  return release.trusted && !release.revoked && release.expiresAt.getTime() > now.getTime();
}

function rankOf(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) hash = mix32(hash ^ text.charCodeAt(at)) + at;
  return mix32(hash);
}

// Automatic stages: one crawler → 5 % → all. A release advances when the crawlers in the stage that took it have run it
// well for the soak time. It is held when they do worse than the others: they roll back, go offline, or fail by their own
// fault.
//
// Crawlers' reports cannot be checked, and a single machine may be faulty, so none decides alone: a first crawler that
// fails is followed by another one, and in a larger stage a tenth (at least one, from three members on) may fail, be
// silent or be late. When no other crawler is left to try, one failure is enough to hold the release.

export const defaultSoakMinutes = 60;

/** Share of the fleet in the second stage, in percent. */
export const automaticPercent = 5;

/** A crawler offline for this long counts as gone. A restart or a network failure takes less. */
const goneAfterMs = 600_000;

/** How much larger the share of crawlers that returned or are gone may be in the stage than elsewhere. */
const worseMargin = 0.1;

/** How much larger the share of fetches that fail by the crawler's fault may be. Checked from `leastFetches` on. */
const failureMargin = 0.02;

const leastFetches = 50;

export interface WatchedCrawler {
  readonly name: string;
  readonly inStage: boolean;
  readonly offeredAt: Date | null;
  readonly state: ReleaseState | null;
  readonly reportedAt: Date | null;
  readonly reason: string;
  readonly offlineSince: Date | null;
  /** Number of fetches since the stage began, and of those that failed by the fault of the crawler or our software. */
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

/** Whether the stage is one crawler, no other crawler was tried, and another one is available. */
function mayTryAnother({ crawlers }: Watch): boolean {
  const tried = crawlers.filter(({ offeredAt, inStage }) => inStage || offeredAt !== null);
  return tried.length === 1 && crawlers.length > 1;
}

function takesIt({ offeredAt, state }: WatchedCrawler): boolean {
  return offeredAt !== null && (state === null || state === "running");
}

/** How many outliers or false reports are tolerated. */
const spare = (count: number) => (count < 3 ? 0 : Math.max(1, Math.floor(count * worseMargin)));

/** Counts all crawlers that were offered the release, in this stage or before, since two reports are no single outlier. */
function returnedWords(
  crawlers: readonly WatchedCrawler[],
  members: readonly WatchedCrawler[],
): string | null {
  const tried = crawlers.filter(
    (one) => takesIt(one) || (one.offeredAt !== null && one.state === "returned"),
  );
  const returned = tried.filter(({ state }) => state === "returned");
  if (!returned.some(({ inStage }) => inStage) || returned.length <= spare(tried.length)) return null;
  // In a stage of many crawlers that is not the whole fleet, one report is not enough, however few have taken the release.
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

/** On both sides, ignores as many of the worst crawlers as are tolerated, so that no single count dominates. */
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
  // Crawlers of the previous stage must have run the release during this stage, and new ones must have it by now.
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
