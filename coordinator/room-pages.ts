/**
 * Each room's part of the pages, by what the paths of its operations begin with: a coordinator has all of them; a command in its
 * own process loads the room that it asks, and no other.
 */
import type { WebPart } from "./ask/web-part.ts";
import type { RoomOptions } from "./start-web.ts";

type Parts = (options: RoomOptions) => Promise<WebPart | readonly WebPart[]>;

const rooms: readonly (readonly [prefixes: string, parts: Parts])[] = [
  [
    "/api/overview /api/accuracy /api/alerts /api/fleet/queue /api/fleet/in-hand",
    async (all) => (await import("./overview/start.ts")).overviewPart(all),
  ],
  ["/api/who", async (all) => (await import("./who/start.ts")).whoPart(all)],
  ["/api/search /api/pages", async (all) => (await import("./search/start.ts")).searchPart(all)],
  ["/api/fleet /api/crawlers", async (all) => (await import("./fleet/start.ts")).fleetPart(all)],
  ["/api/explore", async (all) => (await import("./explore/start.ts")).explorePart(all)],
  ["/api/policies", async (all) => (await import("./settings/start.ts")).policyPart(all)],
  ["/api/registry", async (all) => (await import("./registry/start.ts")).registryPart(all)],
  [
    "/api/fleet/recrawl /api/recrawl",
    async ({ pool }) => {
      const { createChartReads } = await import("./overview/chart-reads.ts");
      const { charts } = createChartReads(pool);
      return (await import("./recrawl/start.ts")).recrawlPart(
        pool,
        async (range) => await charts("recrawl", range),
      );
    },
  ],
  ["/api/changes", async (all) => (await import("./changes/start.ts")).changePart(all)],
  ["/api/graph", async ({ pool }) => (await import("./web-graph/start.ts")).graphPart(pool)],
  ["/api/channels /api/coverage", async (all) => (await import("./channels/start.ts")).channelPart(all)],
  ["/api/fleet/site-caps", async ({ pool }) => (await import("./site-caps/start.ts")).siteCapPart(pool)],
  ["/api/sites", async (all) => (await import("./sites/start.ts")).sitePart(all)],
  ["/api/reports", async (all) => (await import("./reports/start.ts")).reportPart(all)],
  ["/api/urls /api/submissions", async (all) => (await import("./submissions/start.ts")).submissionPart(all)],
  ["/api/alerts", async (all) => (await import("./alerts/start.ts")).alertPart(all)],
  ["/api/coordinators", async (all) => (await import("./federation/start.ts")).coordinatorPart(all)],
  ["/api/storage", async (all) => (await import("./storage/start.ts")).storagePart(all)],
  [
    "/api/find",
    async ({ pool }) =>
      (await import("./find/start.ts")).findPart(
        pool,
        async () => await (await import("./room-operations.ts")).everyOperation(),
      ),
  ],
  ["", async (all) => (await import("./access/start.ts")).accessParts(all.pool, all)],
];

/** `path`: of the one operation that is asked; left out: all rooms. */
export async function pagesOfRooms(options: RoomOptions, path?: string): Promise<readonly WebPart[]> {
  const lengthOf = (prefixes: string) =>
    Math.max(
      0,
      ...prefixes
        .split(" ")
        .filter((one) => path?.startsWith(one))
        .map(({ length }) => length),
    );
  const longest = Math.max(...rooms.map(([prefixes]) => lengthOf(prefixes)));
  const asked = rooms.filter(([prefixes]) => path === undefined || lengthOf(prefixes) === longest);
  return (await Promise.all(asked.map(([, parts]) => parts(options)))).flat();
}
