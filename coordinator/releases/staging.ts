/**
 * Which crawlers get which release: one crawler, then a share of the fleet, then all. Who belongs to a share
 * follows from the release and the crawlers' names, so every coordinator of a fleet picks the same ones, and each
 * release begins with others.
 */
import type { CrawlerId } from "#core/ids";
import { mix32 } from "#core/random";

export type ReleaseStage = "none" | "one" | "percent" | "all";

/** What became of a release at a crawler, as its dock says (protocol/messages, crawler:release-report). */
export type ReleaseState = "refused" | "pinned" | "delayed" | "running" | "returned";

export interface StagedRelease {
  readonly version: string;
  /** Grows with every signing. */
  readonly sequence: number;
  readonly digest: string;
  readonly expiresAt: Date;
  readonly revoked: boolean;
  /** A key that counts has signed it. */
  readonly trusted: boolean;
  readonly stage: ReleaseStage;
  /** For the stage `percent`; null otherwise. */
  readonly percent: number | null;
  /** Who got it first. */
  readonly firstCrawlerId: CrawlerId | null;
  readonly stageSince: Date | null;
  /** It moves on by itself after so many minutes in good order; null: by hand. */
  readonly soakMinutes: number | null;
}

/** A crawler that a dock runs. */
export interface DockedCrawler {
  readonly crawlerId: CrawlerId;
  readonly name: string;
  /** Of the bundle that it runs. */
  readonly digest: string;
  /** By version, of the releases that were offered to it. */
  readonly reports: ReadonlyMap<string, ReleaseState | null>;
}

/** The second stage is never the first one over again. */
const leastInShare = 2;

/** To whom the release is to be offered. */
export function stageMembers(
  release: Pick<StagedRelease, "stage" | "percent" | "digest" | "firstCrawlerId">,
  docks: readonly Pick<DockedCrawler, "crawlerId" | "name">[],
): ReadonlySet<CrawlerId> {
  const { stage, percent, firstCrawlerId } = release;
  if (stage === "all") return new Set(docks.map(({ crawlerId }) => crawlerId));
  const first = firstCrawlerId === null || stage === "none" ? [] : [firstCrawlerId];
  if (stage !== "percent" || percent === null) return new Set(first);
  const size = Math.max(leastInShare, Math.ceil((docks.length * percent) / 100));
  const ranked = rankedDocks(release.digest, docks).map(({ crawlerId }) => crawlerId);
  return new Set([...new Set([...first, ...ranked])].slice(0, size));
}

/** The crawlers in the order in which they get the release with this digest. */
export function rankedDocks<Dock extends { readonly name: string }>(
  digest: string,
  docks: readonly Dock[],
): readonly Dock[] {
  return docks
    .map((dock) => ({ dock, rank: rankOf(`${digest}/${dock.name}`) }))
    .sort((a, b) => a.rank - b.rank || (a.dock.name < b.dock.name ? -1 : 1))
    .map(({ dock }) => dock);
}

/**
 * The newest release that this crawler is to be offered; null: it is to stay with what it runs. Nothing older than
 * that is offered, since its dock would refuse it, and nothing that it returned from.
 */
export function releaseFor(
  dock: DockedCrawler,
  fleet: { readonly releases: readonly StagedRelease[]; readonly docks: readonly DockedCrawler[] },
  now: Date,
): StagedRelease | null {
  const { releases, docks } = fleet;
  const running = releases.filter(({ digest }) => digest === dock.digest);
  const runningSequence = Math.max(0, ...running.map(({ sequence }) => sequence));
  const fitting = releases.filter(
    (release) =>
      mayRun(release, now) &&
      release.sequence > runningSequence &&
      release.digest !== dock.digest &&
      dock.reports.get(release.version) !== "returned" &&
      stageMembers(release, docks).has(dock.crawlerId),
  );
  return fitting.reduce<StagedRelease | null>(
    (newest, release) => (newest === null || release.sequence > newest.sequence ? release : newest),
    null,
  );
}

/** Neither revoked nor expired nor signed by nobody who counts. */
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

// A release that moves on by itself: one crawler → 5 % → all. It moves on when everybody in the stage who took it
// has run it for the soak time in good order, and it stops, the offer taken back, when a crawler returned from it or
// those who have it do worse than the others: more of them gone, or more fetches that failed by their own fault.

/** How long a stage has to run well, unless the operator says otherwise. */
export const defaultSoakMinutes = 60;

/** The second stage's share of the fleet. */
export const automaticPercent = 5;

/** A swap, or a network that comes back, takes a crawler away for less than this. */
const goneAfterMs = 600_000;

/** More of the stage's crawlers are gone than of the others, by so much. */
const goneMargin = 0.1;

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
  readonly type: "stay" | "advance" | "stop";
  readonly words: string;
}

export function decideStage(watch: {
  readonly crawlers: readonly WatchedCrawler[];
  readonly stageSince: Date;
  readonly soakMinutes: number;
  readonly now: Date;
}): StageDecision {
  const { crawlers, stageSince, now } = watch;
  const members = crawlers.filter(({ inStage }) => inStage);
  const returned = members.find(({ state }) => state === "returned");
  if (returned) return { type: "stop", words: `${returned.name} returned from it: ${returned.reason}` };
  const taking = members.filter(takesIt);
  const others = crawlers.filter(({ inStage }) => !inStage);
  const worse = goneWords(taking, others, { stageSince, now }) ?? failureWords(taking, others);
  if (worse !== null) return { type: "stop", words: worse };
  return soaked(taking, watch);
}

/** Offered, and neither put off nor turned down by its partner or its dock. */
function takesIt({ offeredAt, state }: WatchedCrawler): boolean {
  return offeredAt !== null && (state === null || state === "running");
}

function goneWords(
  taking: readonly WatchedCrawler[],
  others: readonly WatchedCrawler[],
  { stageSince, now }: { readonly stageSince: Date; readonly now: Date },
): string | null {
  const latest = now.getTime() - goneAfterMs;
  const goneSince = ({ offlineSince }: WatchedCrawler, since: Date) =>
    offlineSince !== null && offlineSince >= since && offlineSince.getTime() <= latest;
  const gone = taking.filter((one) => goneSince(one, one.offeredAt ?? stageSince));
  const othersGone = others.filter((one) => goneSince(one, stageSince));
  if (share(gone.length, taking.length) <= share(othersGone.length, others.length) + goneMargin) return null;
  const names = gone.map(({ name }) => name).slice(0, 5);
  return `${gone.length} of ${taking.length} that took it have been gone for over ${goneAfterMs / 60_000} minutes (${names.join(", ")}), of the others ${othersGone.length} of ${others.length}`;
}

function failureWords(taking: readonly WatchedCrawler[], others: readonly WatchedCrawler[]): string | null {
  const running = taking.filter(({ state }) => state === "running");
  const [fetches, failures] = [sum(running, "fetches"), sum(running, "failures")];
  const [otherFetches, otherFailures] = [sum(others, "fetches"), sum(others, "failures")];
  if (fetches < leastFetches) return null;
  if (share(failures, fetches) <= share(otherFailures, otherFetches) + failureMargin) return null;
  return `${failures} of ${fetches} fetches failed by the fault of crawlers that run it, of the others' ${otherFailures} of ${otherFetches}`;
}

function soaked(
  taking: readonly WatchedCrawler[],
  watch: { readonly stageSince: Date; readonly soakMinutes: number; readonly now: Date },
): StageDecision {
  const { stageSince, soakMinutes, now } = watch;
  const running = taking.filter(({ state }) => state === "running");
  const waiting = taking.find(({ state, offlineSince }) => state === null && offlineSince === null);
  if (waiting)
    return { type: "stay", words: `${waiting.name} was offered it and does not say yet that it is well` };
  if (running.length === 0) return { type: "stay", words: "nobody runs it yet" };
  const starts = running.map(({ reportedAt }) => reportedAt?.getTime() ?? now.getTime());
  // Who runs it since the stage before has yet to run it through this one, and the new ones have to get it.
  const latestStart = Math.max(stageSince.getTime(), ...starts);
  const soakedMinutes = Math.floor((now.getTime() - latestStart) / 60_000);
  const words = `${running.length} run it, in good order for ${soakedMinutes} of ${soakMinutes} minutes`;
  return { type: soakedMinutes >= soakMinutes ? "advance" : "stay", words };
}

const share = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);

function sum(crawlers: readonly WatchedCrawler[], field: "fetches" | "failures"): number {
  return crawlers.reduce((total, crawler) => total + crawler[field], 0);
}
