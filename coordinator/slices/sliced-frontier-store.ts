/** The frontier over slices: what names a host goes to its slice, what does not to all of them. One slice is asked itself. */
import type { Pool } from "pg";
import { hostHashOf } from "#core/url-key";
import type { Lease } from "#protocol/lease";
import { bySlice, type OpenSlice, ofAll, type Slices, upOf } from "../database/slices.ts";
import type { FrontierProgress, FrontierStore } from "../frontier/frontier.ts";

/** `create`: the store of one slice. */
export function slicedFrontier(slices: Slices, create: (pool: Pool) => FrontierStore): FrontierStore {
  const stores = storesOf(create);
  const all = async <T>(ask: (store: FrontierStore) => Promise<T>) =>
    await ofAll(slices, async (slice) => await ask(stores(slice)));
  /** By whose turn it is to be asked first. */
  let turn = 0;
  return {
    async admit(urls, scope, now) {
      const groups = bySlice(urls, ({ key }) => slices.ofHost(key.hostHash));
      const admitted = await Promise.all(
        groups.map(async ({ slice, values }) => await stores(slice).admit(values, scope, now)),
      );
      return {
        newUrls: sumOf(admitted, ({ newUrls }) => newUrls),
        newHosts: sumOf(admitted, ({ newHosts }) => newHosts),
      };
    },
    async hostsToResolve(limit, now) {
      const share = Math.ceil(limit / slices.open.length);
      return (await all(async (store) => await store.hostsToResolve(share, now))).flat().slice(0, limit);
    },
    async saveResolutions(resolutions, now) {
      const groups = bySlice(resolutions, ({ host }) => slices.ofHost(hostHashOf(host)));
      await Promise.all(
        groups.map(async ({ slice, values }) => await stores(slice).saveResolutions(values, now)),
      );
    },
    async leaseHosts(request) {
      const open = upOf(slices);
      turn = (turn + 1) % open.length;
      const leases: Lease[] = [];
      for (const slice of [...open.slice(turn), ...open.slice(0, turn)]) {
        const hosts = request.hosts - leases.length;
        if (hosts <= 0) break;
        leases.push(...(await stores(slice).leaseHosts({ ...request, hosts })));
      }
      return leases;
    },
    returnLease: async (lease, now) => await stores(slices.ofNumber(lease.leaseId)).returnLease(lease, now),
    reopenRefused: async (now) => sumOf(await all(async (store) => await store.reopenRefused(now))),
    returnExpired: async (now) => sumOf(await all(async (store) => await store.returnExpired(now))),
    returnLeasesOf: async (crawlerId, now, held) =>
      sumOf(await all(async (store) => await store.returnLeasesOf(crawlerId, now, held))),
    reassignSubnets: async (subnetOf) =>
      sumOf(await all(async (store) => await store.reassignSubnets(subnetOf))),
    async progress(now) {
      const [first, ...others] = await all(async (store) => await store.progress(now));
      return others.reduce(addProgress, first!);
    },
  };
}

/** Hosts and URLs add up; subnets, probes and rounds are shared, and every slice tells the same of them. */
function addProgress(a: FrontierProgress, b: FrontierProgress): FrontierProgress {
  return {
    ...a,
    hosts: a.hosts + b.hosts,
    hostsUnresolved: a.hostsUnresolved + b.hostsUnresolved,
    hostsRefused: a.hostsRefused + b.hostsRefused,
    hostsFetched: a.hostsFetched + b.hostsFetched,
    hostsDelegated: a.hostsDelegated + b.hostsDelegated,
    urls: a.urls + b.urls,
    urlsPending: a.urlsPending + b.urlsPending,
    linksWaiting: a.linksWaiting + b.linksWaiting,
    pages: a.pages + b.pages,
  };
}

function sumOf(values: readonly number[]): number;
function sumOf<T>(values: readonly T[], of: (value: T) => number): number;
function sumOf<T>(values: readonly T[], of: (value: T) => number = Number): number {
  return values.reduce((sum, value) => sum + of(value), 0);
}

/** One for each slice, made when it is first asked for, and anew when its pool is another. */
export function storesOf<Store>(create: (pool: Pool) => Store): (slice: OpenSlice) => Store {
  const stores = new Map<number, { readonly pool: Pool; readonly store: Store }>();
  return ({ number, pool }) => {
    const known = stores.get(number);
    if (known?.pool === pool) return known.store;
    const store = create(pool);
    stores.set(number, { pool, store });
    return store;
  };
}
