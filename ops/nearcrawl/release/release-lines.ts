/** Every release with what became of it at the crawlers. */
import type { ReleaseStores } from "./release-database.ts";
import type { ReleaseLine } from "./release-text.ts";

const nothing = { offered: 0, refused: 0, pinned: 0, delayed: 0, running: 0, returned: 0 };

export async function releaseLines({ releases, releaseFleet }: ReleaseStores): Promise<ReleaseLine[]> {
  const [entries, counts, docks] = await Promise.all([
    releases.list(),
    releaseFleet.counts(),
    releaseFleet.docks(),
  ]);
  return entries.map(({ firstCrawlerId, ...entry }) => ({
    ...entry,
    firstCrawler: docks.find(({ crawlerId }) => crawlerId === firstCrawlerId)?.name ?? null,
    crawlers: counts.get(entry.version) ?? nothing,
  }));
}
