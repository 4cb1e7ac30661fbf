/**
 * A registry import has committed: the new tree is built beside the old one and takes its place, and the
 * hosts whose addresses now lie in other subnets are told so. Delegations of subnets that did not change go on.
 */
import type { FrontierStore } from "../frontier/frontier.ts";
import { SubnetRows } from "../subnets/subnet-rows.ts";
import type { RegistryInForce, SubnetStore, TreeSnapshots } from "../subnets/subnet-store.ts";
import { type SubnetTree, treeOfRows } from "../subnets/subnet-tree.ts";
import type { DelegationStore, MeasuredRound } from "./delegation.ts";
import { learnFromRound, observe, startRound } from "./policies/policies.ts";
import { defaultParameters } from "./policies/round.ts";
import type { CoordinatorState } from "./state.ts";

export interface RefreshTreePorts {
  readonly subnets: Pick<SubnetStore, "registryInForce" | "readRows">;
  readonly frontier: Pick<FrontierStore, "reassignSubnets">;
  readonly state: CoordinatorState;
  /** Where trees are kept between two starts; without it every tree is built from the rows. */
  readonly snapshots?: TreeSnapshots;
}

type LoadTreePorts = Omit<RefreshTreePorts, "frontier">;

/** Sets the tree of the registry in force, from the snapshot where there is one; returns how many subnets it has. */
export async function loadTree(ports: LoadTreePorts): Promise<number> {
  const { tree, registry } = (await keptTree(ports)) ?? (await builtTree(ports));
  ports.state.setTree(tree, registry?.generation ?? null);
  return tree.size;
}

interface TreeInForce {
  readonly tree: SubnetTree;
  readonly registry: RegistryInForce | null;
}

async function keptTree({ subnets, snapshots }: LoadTreePorts): Promise<TreeInForce | null> {
  if (!snapshots) return null;
  const registry = await subnets.registryInForce();
  const tree = registry && (await snapshots.read(registry));
  return tree && { tree, registry };
}

async function builtTree({ subnets, snapshots }: LoadTreePorts): Promise<TreeInForce> {
  const rows = new SubnetRows();
  const registry = await subnets.readRows(rows);
  const tree = treeOfRows(rows);
  if (registry) snapshots?.keep(tree, registry);
  return { tree, registry };
}

/** Loads the tree in force and re-assigns the hosts; returns how many subnets it has and how many hosts moved. */
export async function refreshTree(ports: RefreshTreePorts): Promise<{ subnets: number; movedHosts: number }> {
  const subnets = await loadTree(ports);
  const movedHosts = await ports.frontier.reassignSubnets((address) => ports.state.subnetOf(address));
  return { subnets, movedHosts };
}

// At the start: what the latest rounds measured is learned again from the database, as if they had just run, so
// that the first decisions after a restart are as good as the last ones before it.

/** As many as tell the fleet's surroundings; more would only replace the earlier ones. */
const roundsRead = 2000;

/** Needs the tree, the delegations and the crawlers' RTTs in the state; returns how many rounds it learned from. */
export async function relearnRtts(ports: {
  readonly delegations: Pick<DelegationStore, "latestRounds">;
  readonly state: CoordinatorState;
}): Promise<number> {
  const rounds = await ports.delegations.latestRounds(roundsRead);
  return rounds.filter((round) => relearn(round, ports.state)).length;
}

function relearn({ subnetId, method, probes }: MeasuredRound, state: CoordinatorState): boolean {
  const placement = state.placementOf(subnetId);
  if (placement === null) return false;
  let round = startRound("nearest", {
    placement,
    fleet: state.fleetOf(state.crawlers.map(({ crawlerId }) => crawlerId)),
    knowledge: state.knowledge,
    learned: state.learnedRtts(method),
    parameters: defaultParameters,
  });
  for (const { crawlerId, rttMs } of probes) round = observe(round, crawlerId, { rttMs });
  learnFromRound(round);
  return true;
}
