/** The fleet: everything that operators and partners see and do, as pages and under /api/. */
import { addCrawlerActions } from "./crawler-actions.ts";
import { addCrawlerRoutes } from "./crawler-routes.ts";
import { addFleetLists } from "./fleet-list-routes.ts";
import type { FleetPorts } from "./fleet-ports.ts";
import { addVersionRoutes } from "./fleet-version-routes.ts";
import type { WebPart } from "./http-server.ts";
import { addInvitationRoutes } from "./invitation-routes.ts";
import { addPartnerSignIn } from "./partner-sign-in.ts";
import { addWishRoutes } from "./wish-routes.ts";

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
