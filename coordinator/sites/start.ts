/** The room of sites: the list of hosts, and a page for each. */
import type { RoomOptions } from "../start-web.ts";
import type { WebPart } from "../web/actions.ts";
import { sitesRoutes } from "./sites-routes.ts";

export function sitePart(options: Pick<RoomOptions, "pool">): WebPart {
  const parts = [sitesRoutes(options)];
  return (to) => {
    for (const part of parts) part(to);
  };
}
