/**
 * Each room's part of the pages, by the room's name in room-operations.ts. A coordinator loads all of them; a command loads
 * only the one that it needs.
 */
import type { WebPart } from "./ask/add-operations.ts";
import type { RoomOptions } from "./start-web.ts";

type Parts = (options: RoomOptions) => Promise<WebPart | readonly WebPart[]>;

const rooms: Readonly<Record<string, Parts>> = {
  overview: async (all) => (await import("./tell/overview/start.ts")).overviewPart(all),
  who: async (all) => (await import("./tell/who/start.ts")).whoPart(all),
  search: async (all) => (await import("./tell/search/start.ts")).searchPart(all),
  fleet: async (all) => {
    const { createChartReads } = await import("./tell/overview/chart-reads.ts");
    return (await import("./tell/fleet/start.ts")).fleetPart({ ...all, past: createChartReads(all.pool) });
  },
  explore: async (all) => (await import("./tell/explore/start.ts")).explorePart(all),
  policies: async (all) => (await import("./run/settings/start.ts")).policyPart(all),
  registry: async (all) => (await import("./run/registry/start.ts")).registryPart(all),
  recrawl: async ({ pool }) => {
    const { createChartReads } = await import("./tell/overview/chart-reads.ts");
    const { charts } = createChartReads(pool);
    return (await import("./crawl/recrawl/start.ts")).recrawlPart(
      pool,
      async (range) => await charts("recrawl", range),
    );
  },
  changes: async (all) => (await import("./crawl/changes/start.ts")).changePart(all),
  graph: async ({ pool }) => (await import("./crawl/web-graph/start.ts")).graphPart(pool),
  channels: async (all) => (await import("./crawl/channels/start.ts")).channelPart(all),
  "site-caps": async ({ pool }) => (await import("./crawl/site-caps/start.ts")).siteCapPart(pool),
  sites: async (all) => (await import("./tell/sites/start.ts")).sitePart(all),
  reports: async (all) => (await import("./tell/reports/start.ts")).reportPart(all),
  urls: async (all) => (await import("./crawl/submissions/start.ts")).submissionPart(all),
  alerts: async (all) => (await import("./tell/overview/alerts/start.ts")).alertPart(all),
  coordinators: async (all) => (await import("./crawl/federation/start.ts")).coordinatorPart(all),
  storage: async (all) => (await import("./tell/storage/start.ts")).storagePart(all),
  find: async ({ pool }) =>
    (await import("./tell/find/start.ts")).findPart(pool, async () =>
      (await import("./room-operations.ts")).everyOperation(),
    ),
  contact: async (all) => (await import("./run/opt-outs/start.ts")).contactPart(all),
  releases: async (all) => (await import("./run/releases/start.ts")).releaseFilePart(all),
  access: async (all) => (await import("./run/access/start.ts")).accessParts(all.pool, all),
};

/** Loads the pages of one `room`, or of all. */
export async function pagesOfRooms(options: RoomOptions, room?: string): Promise<readonly WebPart[]> {
  const asked = Object.entries(rooms).filter(([name]) => room === undefined || name === room);
  return (await Promise.all(asked.map(([, parts]) => parts(options)))).flat();
}
