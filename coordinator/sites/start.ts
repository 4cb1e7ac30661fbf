/** The room of sites: the list of hosts, and a page for each. */
import { createChangeFeed } from "../changes/change-feed-reads.ts";
import { fetchAgain } from "../frontier/fetch-again-writes.ts";
import { following } from "../live-config.ts";
import type { RoomOptions } from "../start-web.ts";
import type { WebPart } from "../web/actions.ts";
import { createReports } from "../who/reads.ts";
import { hostReport } from "../who/url-reads.ts";
import type { SitePorts } from "./site.ts";
import { createSiteReads, scheduledUrls } from "./site-reads.ts";
import { siteRoutes } from "./site-routes.ts";
import { sitesRoutes } from "./sites-routes.ts";

export function sitePart(options: Pick<RoomOptions, "pool" | "resolver" | "config">): WebPart {
  const { pool, config, resolver } = options;
  const scope = following(() => config.scope);
  const parts = [
    sitesRoutes(options),
    siteRoutes({
      ...sitePorts({ pool, resolver, scope, domainSets: config.domainSets }),
      scheduled: async (hostHash, asked) => await scheduledUrls(pool, hostHash, asked),
      fetchAgain: async (keys, now) => await fetchAgain(pool, keys, now),
    }),
  ];
  return (to) => {
    for (const part of parts) part(to);
  };
}

/** What a host's page and command are answered from. */
export function sitePorts({
  pool,
  ...who
}: Pick<RoomOptions, "pool"> & Omit<SitePorts["who"], "reads">): SitePorts {
  const reports = createReports(pool, () => performance.now());
  return {
    who: {
      ...who,
      reads: { ...reports, hostReport: async (hostHash) => await hostReport(pool, hostHash, false) },
    },
    feed: createChangeFeed(pool),
    sites: createSiteReads(pool),
  };
}
