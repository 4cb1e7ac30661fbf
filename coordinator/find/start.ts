/** /find and /api/find: everything that can be opened, by a part of its name. */
import type { Pool } from "pg";
import { addOperations } from "../ask/add-operations.ts";
import type { WebPart } from "../ask/web-part.ts";
import { everyOperation } from "../room-operations.ts";
import { findOperations } from "./find-ask.ts";
import { createFindReads } from "./find-reads.ts";
import { pagePlacesOf } from "./places.ts";

export const findPart = (pool: Pool): WebPart =>
  addOperations(findOperations, {
    reads: createFindReads(pool),
    // Loaded by the first question, since it is every room's operations.
    pages: async () => pagePlacesOf(await everyOperation()),
  });
