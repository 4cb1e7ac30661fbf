/** Releases as a table for people. */
import type { ReleaseCounts, ReleaseEntry } from "#coordinator/flows/release-ports";
import { formatTable } from "../output.ts";
import { printable } from "../printable.ts";

export interface ReleaseLine extends Omit<ReleaseEntry, "firstCrawlerId"> {
  /** Name of the crawler that got it first. */
  readonly firstCrawler: string | null;
  readonly crawlers: ReleaseCounts;
  /** Of a release that moves by itself: how far it is, in words; null for the others. */
  readonly standing: string | null;
}

const states = ["offered", "running", "returned", "pinned", "delayed", "refused"] as const;

export function releaseText(releases: readonly ReleaseLine[], now: Date): string {
  if (releases.length === 0) return "no release is published: nearcrawl release init makes the first one";
  return formatTable(
    [
      { title: "release" },
      { title: "stage" },
      ...states.map((title) => ({ title, align: "right" as const })),
      { title: "" },
    ],
    releases.map((release) => [
      release.version,
      stageText(release),
      ...states.map((state) => String(release.crawlers[state])),
      remarkOn(release, now),
    ]),
  );
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

function remarkOn(release: ReleaseLine, now: Date): string {
  if (release.revoked) return printable(release.stageWords || "revoked");
  if (!release.trusted) return "its key was retired: sign it anew";
  if (release.expiresAt <= now) return `expired on ${day(release.expiresAt)}: sign it anew`;
  if (release.standing !== null) return printable(`moves on by itself: ${release.standing}`);
  const since = release.stageSince === null ? "" : `since ${release.stageSince.toISOString().slice(0, 16)}Z`;
  return printable(`${since}${release.stageWords === "" ? "" : `: ${release.stageWords}`}`);
}

const day = (at: Date) => at.toISOString().slice(0, 10);
