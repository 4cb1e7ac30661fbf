/**
 * A registry import has committed: the new tree is built beside the old one and takes its place, and the
 * hosts whose addresses now lie in other subnets are told so. Delegations of subnets that did not change go on.
 */
import { SubnetTreeBuilder } from "#core/subnet/subnet-tree";
import type { CoordinatorState } from "./coordinator-state.ts";
import type { FrontierStore, SubnetStore } from "./ports.ts";

export interface RefreshTreePorts {
  readonly subnets: Pick<SubnetStore, "readAll" | "currentGeneration">;
  readonly frontier: Pick<FrontierStore, "reassignSubnets">;
  readonly state: CoordinatorState;
}

export async function loadTree(ports: Pick<RefreshTreePorts, "subnets" | "state">): Promise<number> {
  const generation = await ports.subnets.currentGeneration();
  const builder = new SubnetTreeBuilder();
  let subnets = 0;
  for await (const subnet of ports.subnets.readAll()) {
    builder.add(subnet);
    subnets += 1;
  }
  ports.state.setTree(builder.finish(), generation);
  return subnets;
}

/** Loads the tree in force and re-assigns the hosts; returns how many subnets it has and how many hosts moved. */
export async function refreshTree(ports: RefreshTreePorts): Promise<{ subnets: number; movedHosts: number }> {
  const subnets = await loadTree(ports);
  const movedHosts = await ports.frontier.reassignSubnets((address) => ports.state.subnetOf(address));
  return { subnets, movedHosts };
}
