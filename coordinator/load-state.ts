/** Reads the coordinator's state at its start, and reads the tree again when the registry changes. */
import type { Log } from "#core/log";
import type { Database } from "#db/server-database";
import type { FrontierStore } from "./crawl/frontier/frontier-store.ts";
import type { ResultStore } from "./crawl/results/result-store.ts";
import type { DayBudget } from "./place/crawlers/crawler.ts";
import { type CrawlerStore, createCrawlerStore } from "./place/crawlers/crawler-store.ts";
import type { MeasuredRound } from "./place/delegation/delegation.ts";
import { DelegationTable } from "./place/delegation/delegation-table.ts";
import { learnFromRound, observe, startRound } from "./place/delegation/policies/policies.ts";
import { defaultParameters } from "./place/delegation/policies/round.ts";
import { CoordinatorState } from "./place/delegation/state.ts";
import { createDelegationStore, type DelegationStore } from "./place/delegation/store.ts";
import { createSubnetStore, type RegistryInForce, type SubnetStore } from "./place/subnets/subnet-store.ts";
import { type SubnetTree, treeOfRows } from "./place/subnets/subnet-tree.ts";
import { SubnetRows } from "./place/subnets/tree-columns.ts";
import type { TreeSnapshots } from "./place/subnets/tree-snapshot-store.ts";

interface KnownPorts {
  readonly subnets: SubnetStore;
  readonly crawlers: CrawlerStore;
  readonly delegations: DelegationStore;
  readonly results: ResultStore;
  readonly state: CoordinatorState;
  readonly budget: DayBudget;
  readonly snapshots?: TreeSnapshots;
  readonly hasWitnesses?: boolean;
}

export async function readWhatIsKnown(ports: KnownPorts, now: Date): Promise<void> {
  await ports.crawlers.markAbsent("the coordinator was restarted", now);
  await loadTree(ports);
  ports.state.setCrawlers(await ports.crawlers.list());
  await loadDelegations(ports);
  await ports.crawlers.readEachRtts((rtts) => ports.state.learnRtts(rtts));
  await relearnRtts(ports);
  const midnight = new Date(`${now.toISOString().slice(0, 10)}T00:00:00Z`);
  ports.budget.restore(await ports.results.fetchesSince(midnight), now);
}

/** Re-reads what other coordinators may have changed, except the tree, which `followRegistry` follows. */
export async function readAnew(
  ports: Pick<KnownPorts, "crawlers" | "delegations" | "state" | "hasWitnesses">,
  now: Date,
): Promise<void> {
  ports.state.setCrawlers(await ports.crawlers.list());
  await loadDelegations(ports);
  ports.state.learnRtts(await ports.crawlers.rtts(), now);
  await relearnRtts(ports);
}

/** Reads row by row, because a million records at once would briefly take 250 MB. */
async function loadDelegations({
  delegations,
  state,
}: Pick<KnownPorts, "delegations" | "state">): Promise<void> {
  const table = new DelegationTable();
  await delegations.readEach((delegation) => table.set(delegation));
  state.setDelegations(table);
}

interface RegistryPorts {
  readonly subnets: SubnetStore;
  /** Creates the two root subnets when no registry is in force. */
  readonly ensureRoots: () => Promise<unknown>;
  readonly frontier: FrontierStore;
  readonly state: CoordinatorState;
  readonly log: Log;
  readonly snapshots?: TreeSnapshots;
}

/**
 * Swaps the tree after every import or rollback, and at once if one was missed since the tree was read. Without a
 * registry, two root subnets take its place, so that a first crawl, or one whose only import was rolled back, has a
 * tree.
 */
export async function followRegistry(ports: RegistryPorts): Promise<{ stop(): Promise<void> }> {
  const { subnets, state } = ports;
  let turn = Promise.resolve();
  let again: NodeJS.Timeout | undefined;
  let isStopped = false;
  const changed = () => {
    turn = turn.then(async () => {
      if (isStopped) return;
      await swapTree(ports);
      clearTimeout(again);
      // Tried again, because an import may fail, or the database be away, without any notice.
      if (state.generation === null) again = setTimeout(changed, rootsAgainMs).unref();
    });
  };
  const notices = await subnets.onChange(changed);
  const current = await subnets.currentGeneration();
  if (current === null || current !== state.generation) changed();
  return {
    stop: async () => {
      isStopped = true;
      await notices.stop();
      await turn;
      clearTimeout(again);
    },
  };
}

const rootsAgainMs = 3000;

async function swapTree(ports: RegistryPorts): Promise<void> {
  try {
    await ports.ensureRoots();
    const { subnets, movedHosts } = await refreshTree(ports);
    const { publishedRanges } = ports.state;
    ports.log.info({ subnets, movedHosts, publishedRanges }, "registry changed, new tree in place");
  } catch (error) {
    const what = "registry changed, but the new tree could not be built; the old one serves on";
    ports.log.error({ error }, what);
  }
}

/** With `snapshots`, the tree is read from one, which is ten times faster than reading its rows. */
export async function readState(
  { pool }: Pick<Database, "pool">,
  snapshots?: TreeSnapshots,
): Promise<CoordinatorState> {
  const state = new CoordinatorState();
  const table = new DelegationTable();
  await createDelegationStore(pool).readEach((delegation) => table.set(delegation));
  state.setDelegations(table);
  await loadTree({ subnets: createSubnetStore(pool), state, ...(snapshots ? { snapshots } : {}) });
  state.setCrawlers(await createCrawlerStore(pool).list());
  return state;
}

// After a registry import, the new tree is built beside the old one and replaces it, and hosts whose subnet has changed are
// reassigned. Delegations of unchanged subnets continue.

interface RefreshTreePorts {
  readonly subnets: Pick<SubnetStore, "registryInForce" | "readRows" | "readPublished">;
  readonly frontier: Pick<FrontierStore, "reassignSubnets">;
  readonly state: CoordinatorState;
  /** If absent, every tree is built from rows. */
  readonly snapshots?: TreeSnapshots;
}

type LoadTreePorts = Omit<RefreshTreePorts, "frontier">;

/** Sets the current tree, from a snapshot if possible, and returns its number of subnets. */
async function loadTree(ports: LoadTreePorts): Promise<number> {
  const { tree, registry } = (await keptTree(ports)) ?? (await builtTree(ports));
  ports.state.setPublished(await ports.subnets.readPublished());
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

/** Returns the number of subnets, and of hosts that moved. */
export async function refreshTree(ports: RefreshTreePorts): Promise<{ subnets: number; movedHosts: number }> {
  const subnets = await loadTree(ports);
  const movedHosts = await ports.frontier.reassignSubnets((address) => ports.state.subnetOf(address));
  return { subnets, movedHosts };
}

// At the start, the latest rounds are replayed from the database, so that the first decisions after a restart are as
// good as the last ones before it.

/** This many rounds describe the fleet's surroundings; more would only replace earlier ones. */
const roundsRead = 2000;

/** Needs the tree, the delegations and the crawlers' RTTs. Returns how many rounds were used. */
async function relearnRtts({
  delegations,
  state,
  hasWitnesses = false,
}: Pick<KnownPorts, "delegations" | "state" | "hasWitnesses">): Promise<number> {
  const rounds = await delegations.latestRounds(roundsRead);
  return rounds.filter((round) => relearn(round, state, hasWitnesses)).length;
}

function relearn(
  { subnetId, method, probes }: MeasuredRound,
  state: CoordinatorState,
  hasWitnesses: boolean,
): boolean {
  const placement = state.placementOf(subnetId);
  if (placement === null) return false;
  let round = startRound("nearest", {
    placement,
    fleet: state.fleetOf(state.crawlers.map(({ crawlerId }) => crawlerId)),
    knowledge: state.knowledge,
    learned: state.learnedRtts(method),
    parameters: defaultParameters,
    hasWitnesses,
  });
  for (const { crawlerId, rttMs } of probes) round = observe(round, crawlerId, { rttMs });
  learnFromRound(round);
  return true;
}
