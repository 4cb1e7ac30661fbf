/** /sites: the list of hosts. */
import type { Pool } from "pg";
import type { WebPart } from "../web/actions.ts";

export function sitesRoutes(_ports: { readonly pool: Pool }): WebPart {
  return () => {};
}
