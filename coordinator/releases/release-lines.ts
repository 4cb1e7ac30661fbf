/** Every release with what became of it at the crawlers. */
import type { ReleaseCounts, ReleaseEntry, ReleaseFleetStore, ReleaseStore } from "./release-ports.ts";
import { judgeStage } from "./stage.ts";

export interface ReleaseLine extends Omit<ReleaseEntry, "firstCrawlerId"> {
  /** Name of the crawler that got it first. */
  readonly firstCrawler: string | null;
  readonly crawlers: ReleaseCounts;
  /** Of a release that moves by itself: how far it is, in words; null for the others. */
  readonly standing: string | null;
}

const nothing: ReleaseCounts = { offered: 0, refused: 0, pinned: 0, delayed: 0, running: 0, returned: 0 };

/** Newest first. */
export async function releaseLines(
  stores: {
    readonly releases: Pick<ReleaseStore, "list">;
    readonly releaseFleet: Pick<ReleaseFleetStore, "counts" | "docks" | "watched">;
  },
  now: Date,
): Promise<ReleaseLine[]> {
  const { releases, releaseFleet } = stores;
  const [entries, counts, docks] = await Promise.all([
    releases.list(),
    releaseFleet.counts(),
    releaseFleet.docks(),
  ]);
  const lines: ReleaseLine[] = [];
  for (const entry of entries) {
    const { firstCrawlerId, ...shown } = entry;
    const moves = entry.soakMinutes !== null && entry.stage !== "none";
    lines.push({
      ...shown,
      firstCrawler: docks.find(({ crawlerId }) => crawlerId === firstCrawlerId)?.name ?? null,
      crawlers: counts.get(entry.version) ?? nothing,
      standing: moves ? (await judgeStage(entry, { releaseFleet }, now)).words : null,
    });
  }
  return lines;
}

/** `one (athens)`, `5 %`, `all`, `nobody`. */
export function stageText({
  stage,
  percent,
  firstCrawler,
}: Pick<ReleaseLine, "stage" | "percent" | "firstCrawler">): string {
  if (stage === "none") return "nobody";
  if (stage === "one") return `one (${firstCrawler ?? "gone"})`;
  return stage === "percent" ? `${percent} %` : "all";
}

/** Why it stands where it does, or what has to be done about it. */
export function releaseRemark(release: ReleaseLine, now: Date): string {
  if (release.revoked) return release.stageWords || "revoked";
  if (!release.trusted) return "its key was retired: sign it anew";
  if (release.expiresAt <= now)
    return `expired on ${release.expiresAt.toISOString().slice(0, 10)}: sign it anew`;
  if (release.standing !== null) return `moves on by itself: ${release.standing}`;
  const since = release.stageSince === null ? "" : `since ${release.stageSince.toISOString().slice(0, 16)}Z`;
  return `${since}${release.stageWords === "" ? "" : `: ${release.stageWords}`}`;
}
