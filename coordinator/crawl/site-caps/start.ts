/** Adds the pages about caps on sites. */
import type { Pool } from "pg";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { createSiteCapStore } from "./site-cap-store.ts";
import { siteCapOperations } from "./site-caps-ask.ts";

export const siteCapPart = (pool: Pool): WebPart =>
  addOperations(siteCapOperations, createSiteCapStore(pool));
