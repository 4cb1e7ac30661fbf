/** The pages' part about recrawls, with its store. */
import type { Pool } from "pg";
import type { WebPart } from "../http-server.ts";
import { createRecrawlPlanStore } from "./plan-store.ts";
import { recrawlRoutes } from "./routes.ts";

export function recrawlPart(pool: Pool): WebPart {
  return recrawlRoutes(createRecrawlPlanStore(pool));
}
