/** The pages' part about recrawls, with its store. */
import type { Pool } from "pg";
import type { WebPart } from "./net/http-server.ts";
import { recrawlRoutes } from "./net/recrawl-routes.ts";
import { createRecrawlPlanStore } from "./postgres/recrawl/plan-store.ts";

export function recrawlPart(pool: Pool): WebPart {
  return recrawlRoutes(createRecrawlPlanStore(pool));
}
