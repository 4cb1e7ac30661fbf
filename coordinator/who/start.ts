/** Who crawls it, as a page, as an operation of the API and as a command. */
import { addOperations } from "../ask/add-operations.ts";
import type { WebPart } from "../ask/web-part.ts";
import { frontierOrder } from "../frontier/order/strategies.ts";
import { following } from "../live-config.ts";
import type { RoomOptions } from "../start-web.ts";
import { whoReads } from "./reads.ts";
import { whoOperations } from "./who-ask.ts";

export const whoPart = ({
  pool,
  resolver,
  config,
}: Pick<RoomOptions, "pool" | "resolver" | "config">): WebPart =>
  addOperations(whoOperations, {
    ...{ reads: whoReads(pool, () => performance.now()), resolver, domainSets: config.domainSets },
    scope: following(() => config.scope),
    order: following(() => frontierOrder(config.frontier)),
  });
