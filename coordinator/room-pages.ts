/**
 * Each room's part of the pages, by the room's name in room-operations.ts: a coordinator has all of them; a command in its
 * own process loads the room that it asks, and no other.
 */
import type { WebPart } from "./ask/web-part.ts";
import type { RoomOptions } from "./start-web.ts";

type Parts = (options: RoomOptions) => Promise<WebPart | readonly WebPart[]>;

const rooms: Readonly<Record<string, Parts>> = {
  overview: async (all) => (await import("./overview/start.ts")).overviewPart(all),
  who: async (all) => (await import("./who/start.ts")).whoPart(all),
  search: async (all) => (await import("./search/start.ts")).searchPart(all),
  fleet: async (all) => {
    const { createChartReads } = await import("./overview/chart-reads.ts");
    return (await import("./fleet/start.ts")).fleetPart({ ...all, past: createChartReads(all.pool) });
  },
  explore: async (all) => (await import("./explore/start.ts")).explorePart(all),
  policies: async (all) => (await import("./settings/start.ts")).policyPart(all),
  registry: async (all) => (await import("./registry/start.ts")).registryPart(all),
  recrawl: async ({ pool }) => {
    const { createChartReads } = await import("./overview/chart-reads.ts");
    const { charts } = createChartReads(pool);
    return (await import("./recrawl/start.ts")).recrawlPart(
      pool,
      async (range) => await charts("recrawl", range),
    );
  },
  changes: async (all) => (await import("./changes/start.ts")).changePart(all),
  graph: async ({ pool }) => (await import("./web-graph/start.ts")).graphPart(pool),
  channels: async (all) => (await import("./channels/start.ts")).channelPart(all),
  "site-caps": async ({ pool }) => (await import("./site-caps/start.ts")).siteCapPart(pool),
  sites: async (all) => (await import("./sites/start.ts")).sitePart(all),
  reports: async (all) => (await import("./reports/start.ts")).reportPart(all),
  urls: async (all) => (await import("./submissions/start.ts")).submissionPart(all),
  alerts: async (all) => (await import("./overview/alerts/start.ts")).alertPart(all),
  coordinators: async (all) => (await import("./federation/start.ts")).coordinatorPart(all),
  storage: async (all) => (await import("./storage/start.ts")).storagePart(all),
  find: async ({ pool }) =>
    (await import("./find/start.ts")).findPart(pool, async () =>
      (await import("./room-operations.ts")).everyOperation(),
    ),
  access: async (all) => (await import("./access/start.ts")).accessParts(all.pool, all),
};

/** `room`: of the one operation that is asked; left out: all rooms. */
export async function pagesOfRooms(options: RoomOptions, room?: string): Promise<readonly WebPart[]> {
  const asked = Object.entries(rooms).filter(([name]) => room === undefined || name === room);
  return (await Promise.all(asked.map(([, parts]) => parts(options)))).flat();
}
