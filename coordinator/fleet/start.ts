/** The fleet: everything that operators and partners see and do, as pages and under /api/. */
import type { Pool } from "pg";
import { addPartnerSignIn } from "../access/sign-in-routes.ts";
import { addOperations } from "../ask/add-operations.ts";
import { invitingCoordinator } from "../inviting-coordinator.ts";
import { addWishRoutes } from "../opt-outs/routes.ts";
import { failureOperations } from "../overview/failures-ask.ts";
import { incidentOperations } from "../overview/incidents-ask.ts";
import { addVersionRoutes } from "../releases/routes.ts";
import { trustOperations } from "../trust/trust-ask.ts";
import type { WebPart } from "../web/actions.ts";
import { crawlerOperations } from "./crawler-ask.ts";
import { crawlerDeedOperations } from "./crawler-deeds-ask.ts";
import { crawlerPastOperations } from "./crawler-past-ask.ts";
import { fleetOperations as listOperations } from "./fleet-ask.ts";
import { type FleetPorts, fleetStores } from "./fleet-store.ts";
import { invitationOperations } from "./invitations-ask.ts";
