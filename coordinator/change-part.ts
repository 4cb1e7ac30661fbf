/** The pages' part about changes, with its store. */
import { changeRoutes } from "./net/change-routes.ts";
import type { WebPart } from "./net/http-server.ts";
import { createChangeFeed } from "./postgres/changes/change-feed.ts";
import type { WebPartOptions } from "./web-parts.ts";

type ChangePartOptions = Pick<WebPartOptions, "pool" | "log" | "version">;

export function changePart({ pool, log, version }: ChangePartOptions): WebPart {
  return changeRoutes({ feed: createChangeFeed(pool), log, version });
}
