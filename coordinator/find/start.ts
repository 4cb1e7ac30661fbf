/** /find and /api/find: everything that can be opened, by a part of its name. */
import type { Pool } from "pg";
import { addOperations } from "../ask/add-operations.ts";
import type { WebPart } from "../ask/web-part.ts";
import { findOperations } from "./find-ask.ts";
import { createFindReads } from "./find-reads.ts";

export const findPart = (pool: Pool): WebPart => addOperations(findOperations, createFindReads(pool));
