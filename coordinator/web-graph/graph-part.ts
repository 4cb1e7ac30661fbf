/** The pages' part about the web graph, with its store. */
import type { Pool } from "pg";
import type { WebPart } from "../http-server.ts";
import { latestSummary, ranksMadeAt } from "./rank-store.ts";
import { graphRoutes } from "./routes.ts";

export function graphPart(pool: Pool): WebPart {
  return graphRoutes({
    latest: async () => await latestSummary(pool),
    ranksAt: async () => await ranksMadeAt(pool),
  });
}
