/** The pages' part about changes, with its store. */

import type { WebPart } from "../http-server.ts";
import type { WebPartOptions } from "../web-parts.ts";
import { createChangeFeed } from "./change-feed-reads.ts";
import { changeRoutes } from "./change-routes.ts";

type ChangePartOptions = Pick<WebPartOptions, "pool" | "log" | "version">;

export function changePart({ pool, log, version }: ChangePartOptions): WebPart {
  return changeRoutes({ feed: createChangeFeed(pool), log, version });
}
