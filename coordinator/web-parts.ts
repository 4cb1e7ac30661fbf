/** The parts of the pages beyond the first ones, each with the adapters that it works with. */
import type { Pool } from "pg";
import { accessParts } from "./access-parts.ts";
import { changePart } from "./change-part.ts";
import { channelPart } from "./channel-part.ts";
import { coordinatorPart } from "./coordinator-part.ts";
import { explorePart } from "./explore-part.ts";
import { fleetPart } from "./fleet-part.ts";
import { graphPart } from "./graph-part.ts";
import type { Access } from "./net/access.ts";
import type { WebPart } from "./net/http-server.ts";
import type { OpenWebOptions } from "./open-web-server.ts";
import { policyPart } from "./policy-part.ts";
import { recrawlPart } from "./recrawl-part.ts";
import { registryPart } from "./registry-part.ts";

export interface WebPartOptions extends OpenWebOptions {
  /** The pages' own connections: few and impatient. */
  readonly pool: Pool;
  readonly access: Access;
}

export function webParts(options: WebPartOptions): readonly WebPart[] {
  return [
    fleetPart(options.pool),
    explorePart(options),
    policyPart(options),
    registryPart(options),
    recrawlPart(options.pool),
    changePart(options),
    graphPart(options.pool),
    channelPart(options.pool),
    coordinatorPart(options),
    ...accessParts(options.pool, options),
  ];
}
