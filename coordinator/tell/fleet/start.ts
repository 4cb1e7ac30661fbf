/** The fleet's pages and API for operators and partners. */
import type { Pool } from "pg";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { partnerAccessOperations } from "../../run/access/access-ask.ts";
import { invitingCoordinator } from "../../run/access/inviting-coordinator-reads.ts";
import { complaintOperations } from "../../run/opt-outs/complaints-ask.ts";
import { optOutOperations } from "../../run/opt-outs/opt-outs-ask.ts";
import { versionOperations } from "../../run/releases/versions-ask.ts";
import { fleetOperations } from "./fleet-ask.ts";
import { type FleetPorts, fleetStores } from "./fleet-store.ts";

/** `now` is the clock of cached figures. */
export function fleetPart(
  { pool, succession, past }: { readonly pool: Pool } & Pick<FleetPorts, "succession" | "past">,
  now: () => Date = () => new Date(),
): WebPart {
  const coordinator = async () => await invitingCoordinator(pool);
  const ports: FleetPorts = { ...fleetStores(pool, now), succession, past, coordinator };
  return (to) => {
    addOperations({ ...fleetOperations, ...partnerAccessOperations, ...versionOperations }, ports)(to);
    addOperations({ ...optOutOperations, ...complaintOperations }, ports)(to);
  };
}
