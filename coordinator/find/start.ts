/** The pages' part about the one box. */

import type { Pool } from "pg";
import type { WebPart } from "../web/actions.ts";
import { createFindReads } from "./find-reads.ts";
import { findRoutes } from "./find-routes.ts";

export function findPart(pool: Pool): WebPart {
  return findRoutes(createFindReads(pool));
}
