/** A crawler that must go at once: no key opens anything, its leases return, its subnets go to others. */

import type { FleetKeys } from "#core/access-types";
import type { CrawlerStore } from "../crawlers/crawler.ts";
import type { FrontierStore } from "../frontier/ports.ts";

/**
 * Returns how many leases came back; null: there is no crawler of that name. Running coordinators end its session
 * and hand its subnets over without waiting for it.
 */
export async function killCrawler(
  name: string,
  ports: {
    readonly keys: Pick<FleetKeys, "revoke">;
    readonly crawlers: Pick<CrawlerStore, "drain">;
    readonly frontier: Pick<FrontierStore, "returnLeasesOf">;
  },
  now: Date,
): Promise<number | null> {
  const crawlerId = await ports.keys.revoke(name, now);
  if (crawlerId === null) return null;
  await ports.crawlers.drain(name, now);
  return await ports.frontier.returnLeasesOf(crawlerId, now);
}
