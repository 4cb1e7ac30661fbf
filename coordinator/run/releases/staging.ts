/**
 * Which crawlers get which release: one crawler, then a share of the fleet, then all. The share follows from the release and
 * the crawlers' names, so every coordinator picks the same crawlers, and each release starts with others.
 */
import type { CrawlerId } from "#core/ids";
import { mix32 } from "#core/random";
import type { CrawlerIdentity } from "../../place/crawlers/crawler.ts";

export type ReleaseStage = "none" | "one" | "percent" | "all";

/** The outcome of a release at a crawler, as its supervisor reports it (protocol/messages, crawler:release-report). */
export type ReleaseState = "refused" | "pinned" | "delayed" | "running" | "returned";

export interface StagedRelease {
  readonly version: string;
  /** Increases with every signing. */
  readonly sequence: number;
  readonly digest: string;
  readonly expiresAt: Date;
  readonly revoked: boolean;
  /** A valid key has signed it. */
  readonly trusted: boolean;
  readonly stage: ReleaseStage;
  readonly percent: number | null;
  /** The first crawler to get it. */
  readonly firstCrawlerId: CrawlerId | null;
  readonly stageSince: Date | null;
  /** Moves on automatically after this many good minutes; null: by hand. */
  readonly soakMinutes: number | null;
}

/** A crawler that a supervisor runs. */
export interface DockedCrawler extends CrawlerIdentity {
  /** The digest of the bundle that it runs. */
  readonly digest: string;
  /** By version, for the releases that were offered to it. */
  readonly reports: ReadonlyMap<string, ReleaseState | null>;
}

/** With three members, two outvote one outlier or false report. */
const leastInShare = 3;

/** The crawlers to which the release is offered. */
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

/** The order in which crawlers get the release with this digest. */
export function rankedDocks<Dock extends { readonly name: string }>(
  digest: string,
  docks: readonly Dock[],
): readonly Dock[] {
  return docks
    .map((dock) => ({ dock, rank: rankOf(`${digest}/${dock.name}`) }))
    .sort((a, b) => a.rank - b.rank || (a.dock.name < b.dock.name ? -1 : 1))
    .map(({ dock }) => dock);
}

interface ReleaseToMembers {
  readonly release: StagedRelease;
  readonly members: ReadonlySet<CrawlerId>;
}

/** Computed once for all crawlers, because ranking the fleet for each crawler would be quadratic. */
export function withMembers(
  releases: readonly StagedRelease[],
  docks: readonly Pick<DockedCrawler, "crawlerId" | "name">[],
): ReleaseToMembers[] {
  return releases.map((release) => ({ release, members: stageMembers(release, docks) }));
}

/**
 * Returns the newest release to offer to this crawler, or null when it keeps its own. Older releases are not offered, since its
 * supervisor would refuse them. Neither is one that it returned from: its supervisor retries that by itself some hours later
 * while it is served.
 */
export function releaseFor(
  dock: DockedCrawler,
  staged: readonly ReleaseToMembers[],
  now: Date,
): StagedRelease | null {
  const releases = staged.map(({ release }) => release);
  const running = releases.filter(({ digest }) => digest === dock.digest);
  const runningSequence = Math.max(0, ...running.map(({ sequence }) => sequence));
  const fitting = staged.filter(
    ({ release, members }) =>
      members.has(dock.crawlerId) &&
      mayRun(release, now) &&
      release.sequence > runningSequence &&
      release.digest !== dock.digest &&
      dock.reports.get(release.version) !== "returned",
  );
  return fitting
    .map(({ release }) => release)
    .reduce<StagedRelease | null>(
      (newest, release) => (newest === null || release.sequence > newest.sequence ? release : newest),
      null,
    );
}

/** True when it is neither revoked nor expired and a valid key signed it. */
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
