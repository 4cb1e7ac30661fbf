/** The pages' part about caps on sites. */
import type { Pool } from "pg";
import type { WebPart } from "../web/actions.ts";
import { siteCapRoutes } from "./routes.ts";
import { createSiteCapStore } from "./site-cap-store.ts";

export function siteCapPart(pool: Pool): WebPart {
  return siteCapRoutes(createSiteCapStore(pool));
}
