/** Releases as a table for people. */
import { type ReleaseLine, releaseRemark, stageText } from "#coordinator/releases/routes";
import { formatTable } from "../output.ts";
import { printable } from "../printable.ts";

const states = ["offered", "running", "returned", "pinned", "delayed", "refused"] as const;

export function releaseText(releases: readonly ReleaseLine[], now: Date): string {
  if (releases.length === 0)
    return "no release is published: the coordinator makes the first one as it starts, or nearcrawl release init does";
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
      printable(releaseRemark(release, now)),
    ]),
  );
}
