/**
 * The crawlers' round-trip times to each other, D of the design's section 5: each crawler measures its peers'
 * public addresses by itself; the smaller of both directions counts, since congestion only adds. Pairs that
 * nobody could measure stay unknown, and rule nobody out.
 */
import type { CrawlerId } from "#core/ids";
import type { CrawlerMessage } from "#protocol/messages";
import type { CrawlerStore, PeerRtt } from "../crawlers/crawler.ts";
import type { CoordinatorState } from "./state.ts";

type PeerReport = Extract<CrawlerMessage, { type: "crawler:peer-rtts" }>;

/** What a report measured; outcomes other than `measured`, and the crawler itself, are left out. */
export function measuredPeers(from: CrawlerId, report: PeerReport): PeerRtt[] {
  return report.peers.flatMap(({ crawlerId, outcome }) =>
    outcome.type === "measured" && crawlerId !== from
      ? [{ from, to: crawlerId as CrawlerId, rttMs: outcome.rttMs, method: outcome.method }]
      : [],
  );
}

export async function takePeerReport(
  from: CrawlerId,
  report: PeerReport,
  ports: { readonly crawlers: Pick<CrawlerStore, "saveRtts">; readonly state: CoordinatorState },
  now: Date,
): Promise<void> {
  const known = measuredPeers(from, report).filter(({ to }) => ports.state.crawler(to) !== null);
  if (known.length === 0) return;
  await ports.crawlers.saveRtts(known, now);
  ports.state.learnRtts(known, now);
}
