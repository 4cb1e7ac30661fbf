/** The pages' part about the one box. */

import type { Pool } from "pg";
import { createSavedViewStore } from "../access/saved-view-store.ts";
import type { WebPart } from "../web/actions.ts";
import { createFindReads } from "./find-reads.ts";
import { findRoutes } from "./find-routes.ts";

export function findPart(pool: Pool): WebPart {
  return findRoutes({ reads: createFindReads(pool), savedViews: createSavedViewStore(pool) });
}
