/** The pages' part about the one box. */
import { createSavedViewStore } from "../access/saved-view-store.ts";
import type { Slices } from "../database/slices.ts";
import type { WebPart } from "../web/actions.ts";
import { createFindReads } from "./find-reads.ts";
import { findRoutes } from "./find-routes.ts";

export function findPart(slices: Slices): WebPart {
  return findRoutes({ reads: createFindReads(slices), savedViews: createSavedViewStore(slices.shared) });
}
