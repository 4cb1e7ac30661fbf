/** The parts of the pages beyond the first ones, each with the adapters that it works with. */
import type { Pool } from "pg";
import { accessParts } from "./access/start.ts";
import { changePart } from "./changes/start.ts";
import { channelPart } from "./channels/start.ts";
import { explorePart } from "./explore/start.ts";
import { coordinatorPart } from "./federation/start.ts";
import { fleetPart } from "./fleet/start.ts";
import type { WebPart } from "./http-server.ts";
import { recrawlPart } from "./recrawl/start.ts";
import { registryPart } from "./registry/start.ts";
import { policyPart } from "./settings/start.ts";
import type { OpenWebOptions } from "./start-web.ts";
import type { Access } from "./web/access.ts";
import { graphPart } from "./web-graph/start.ts";

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
