/** The parts of the pages beyond the first ones, each with the adapters that it works with. */
import type { Pool } from "pg";
import type { WebPart } from "./net/http-server.ts";
import type { OpenWebOptions } from "./open-web-server.ts";

export interface WebPartOptions extends OpenWebOptions {
  /** The pages' own connections: few and impatient. */
  readonly pool: Pool;
}

export function webParts(_options: WebPartOptions): readonly WebPart[] {
  return [];
}
