/** Every release with what became of it at the crawlers. */
import { judgeStage } from "#coordinator/flows/stage-releases";
import type { ReleaseStores } from "./release-database.ts";
import type { ReleaseLine } from "./release-text.ts";

const nothing = { offered: 0, refused: 0, pinned: 0, delayed: 0, running: 0, returned: 0 };

export async function releaseLines(
  { releases, releaseFleet }: ReleaseStores,
  now: Date,
): Promise<ReleaseLine[]> {
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
