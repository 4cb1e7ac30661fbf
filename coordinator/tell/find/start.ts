/** /find and /api/find: everything that can be opened, by part of its name. */
import type { Pool } from "pg";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { pagePlacesOf } from "./find.ts";
import { findOperations } from "./find-ask.ts";
import { createFindReads } from "./find-reads.ts";

/** `operations` loads the operations of all rooms at the first query. */
export const findPart = (
  pool: Pool,
  operations: () => Promise<Parameters<typeof pagePlacesOf>[0]>,
): WebPart =>
  addOperations(findOperations, {
    reads: createFindReads(pool),
    pages: async () => pagePlacesOf(await operations()),
  });
