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

/** Of three, one that is odd or lies is outvoted by two. */
const leastInShare = 3;

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

/** A release, and to whom it is to be offered. */
interface ReleaseToMembers {
  readonly release: StagedRelease;
  readonly members: ReadonlySet<CrawlerId>;
}

/** Made once for all crawlers: ranking a fleet for each of its crawlers grows with its square. */
export function withMembers(
  releases: readonly StagedRelease[],
  docks: readonly Pick<DockedCrawler, "crawlerId" | "name">[],
): ReleaseToMembers[] {
  return releases.map((release) => ({ release, members: stageMembers(release, docks) }));
}

/**
 * The newest release that this crawler is to be offered; null: it is to stay with what it runs. Nothing older than
 * that is offered, since its dock would refuse it, and nothing that it returned from, which its supervisor tries again by
 * itself some hours later, as long as it is served.
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
