/** What the servers of a running world share: the world, its look-ups, its clock and what disturbs it. */
import { DueQueue } from "./due-queue.ts";
import type { World, WorldSite } from "./model.ts";
import { NetworkConditions } from "./network-conditions.ts";
import type { PageChanges } from "./page-changes.ts";

export interface WorldState {
  readonly world: World;
  readonly queue: DueQueue;
  readonly conditions: NetworkConditions;
  /** Null: every page stays as it is planned. */
  readonly changes: { current: PageChanges | null };
  readonly siteByHost: ReadonlyMap<string, WorldSite>;
  /** The first site at each address; a name with several addresses is found at each. */
  readonly siteByAddress: ReadonlyMap<string, WorldSite>;
  /** How long a connection to an address that nobody has stays without an answer. */
  readonly timeoutMs: number;
  /** Calls back when a crawler is cut off; returns how to stop that. */
  onOutage(crawlerIndex: number, cutOff: () => void): () => void;
  /** Cuts a crawler off: its connections end, and new ones get no answer; or connects it again. */
  setOutage(crawlerIndex: number, isCutOff: boolean): void;
}

export function worldState(world: World, settings: { readonly timeoutMs: number }): WorldState {
  const siteByAddress = new Map<string, WorldSite>();
  for (const site of world.sites) {
    for (const address of site.addresses) if (!siteByAddress.has(address)) siteByAddress.set(address, site);
  }
  const conditions = new NetworkConditions(world);
  const watchers = new Map<number, Set<() => void>>();
  return {
    world,
    queue: new DueQueue(),
    conditions,
    changes: { current: null },
    siteByHost: new Map(world.sites.map((site) => [site.host, site])),
    siteByAddress,
    timeoutMs: settings.timeoutMs,
    onOutage: (crawlerIndex, cutOff) => {
      const set = watchers.get(crawlerIndex) ?? new Set();
      watchers.set(crawlerIndex, set.add(cutOff));
      return () => void set.delete(cutOff);
    },
    setOutage: (crawlerIndex, isCutOff) => {
      conditions.setOutage(crawlerIndex, isCutOff);
      if (isCutOff) for (const cutOff of watchers.get(crawlerIndex) ?? []) cutOff();
    },
  };
}
