/** The pages' part about the web graph, with its store. */
import type { Pool } from "pg";
import { graphRoutes } from "./net/graph-routes.ts";
import type { WebPart } from "./net/http-server.ts";
import { latestSummary, ranksMadeAt } from "./postgres/graph/url-rank-store.ts";

export function graphPart(pool: Pool): WebPart {
  return graphRoutes({
    latest: async () => await latestSummary(pool),
    ranksAt: async () => await ranksMadeAt(pool),
  });
}
