/** The fleet: everything that operators and partners see and do, as pages and under /api/. */

import { addPartnerSignIn } from "../access/sign-in-routes.ts";
import type { WebPart } from "../http-server.ts";
import { addWishRoutes } from "../opt-outs/routes.ts";
import { addVersionRoutes } from "../releases/routes.ts";
import { addCrawlerActions } from "./crawler-actions.ts";
import { addCrawlerRoutes } from "./crawler-routes.ts";
import { addInvitationRoutes } from "./invitation-routes.ts";
import { addFleetLists } from "./list-routes.ts";
import type { FleetPorts } from "./ports.ts";

export function fleetRoutes(ports: FleetPorts): WebPart {
  return ({ views, actions }) => {
    addFleetLists(views, ports);
    addInvitationRoutes(views, actions, ports);
    addCrawlerRoutes(views, ports);
    addCrawlerActions(actions, ports);
    addPartnerSignIn(actions, ports);
    addVersionRoutes(views, actions, ports);
    addWishRoutes(views, actions, ports);
  };
}
