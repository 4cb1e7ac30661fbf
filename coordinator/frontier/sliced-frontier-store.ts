/** The frontier over slices: what names a host goes to its slice, what does not to all of them. One slice is asked itself. */
import type { Pool } from "pg";
import type { CrawlerId, HostHash } from "#core/ids";
import { hostHashOf } from "#core/url-key";
import { isConnectionLost } from "#db/server-database";
import type { Lease } from "#protocol/lease";
import { bySlice, type OpenSlice, ofAll, type Slices, storesOf, upOf } from "../database/slices.ts";
import type { DueWorkReads } from "./due-work-reads.ts";
import type { FrontierProgress, FrontierStore } from "./frontier.ts";
import { createFrontierStore, waitingSubnets } from "./frontier-store.ts";
import type { PaceStore } from "./pace.ts";

/** `create`: the store of one slice. */
export function slicedFrontier(slices: Slices, create: (pool: Pool) => FrontierStore): FrontierStore {
  const stores = storesOf(create);
  const all = async <T>(ask: (store: FrontierStore) => Promise<T>) =>
    await ofAll(slices, async (slice) => await ask(stores(slice)));
  const [resolving, leasing] = [inTurn(slices), inTurn(slices)];
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
    /** Whoever is given one has it to himself for a while: no slice is asked for more than are wanted. */
    async hostsToResolve(limit, now) {
      const hosts: string[] = [];
      let fault: unknown = null;
      const ask = async (slice: OpenSlice, share: number) => {
        try {
          return share === 0 ? [] : await stores(slice).hostsToResolve(share, now);
        } catch (error) {
          // Its server went away just now: what others gave would be nobody's.
          if (!isConnectionLost(error)) throw error;
          fault = error;
          return [];
        }
      };
      let asked = resolving();
      while (hosts.length < limit && asked.length > 0) {
        const left = limit - hosts.length;
        const shares = asked.map((_, at) => Math.floor((left + at) / asked.length));
        const given = await Promise.all(asked.map(async (slice, at) => await ask(slice, shares[at]!)));
        hosts.push(...given.flat());
        asked = asked.filter((_, at) => given[at]!.length === shares[at]);
      }
      if (fault !== null && hosts.length === 0) throw fault;
      return hosts;
    },
    async saveResolutions(resolutions, now) {
      const groups = bySlice(resolutions, ({ host }) => slices.ofHost(hostHashOf(host)));
      await Promise.all(
        groups.map(async ({ slice, values }) => await stores(slice).saveResolutions(values, now)),
      );
    },
    async leaseHosts(request) {
      const leases: Lease[] = [];
      let fault: unknown = null;
      for (const slice of leasing()) {
        const hosts = request.hosts - leases.length;
        if (hosts <= 0) break;
        try {
          leases.push(...(await stores(slice).leaseHosts({ ...request, hosts })));
        } catch (error) {
          // Its server went away just now: what others gave would be nobody's until it runs out.
          if (!isConnectionLost(error)) throw error;
          fault = error;
        }
      }
      if (fault !== null && leases.length === 0) throw fault;
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
      if (others.length === 0) return first!;
      const waiting = await ofAll(slices, async ({ pool }) => await waitingSubnets(pool));
      return { ...others.reduce(addProgress, first!), subnetsWaiting: new Set(waiting.flat()).size };
    },
  };
}

/** Those that are up, each time from the next one on. */
function inTurn(slices: Slices): () => readonly OpenSlice[] {
  let turn = 0;
  return () => {
    const open = upOf(slices);
    turn = (turn + 1) % Math.max(1, open.length);
    return [...open.slice(turn), ...open.slice(0, turn)];
  };
}

/** Hosts and URLs add up; delegations, probes and rounds are shared, and the first slice tells of them. */
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

/** The stores of the frontier as they are made everywhere. `onOpened`: these hosts may be leased from now on. */
export const frontierOver = (
  slices: Slices,
  onOpened?: (hosts: readonly HostHash[]) => void,
): FrontierStore =>
  slicedFrontier(slices, (pool) => createFrontierStore(pool, onOpened, { turns: slices.shared }));

// What is due, over slices: for crawlers that wait for work, and for the pace that crawlers are told.

export function slicedDueWork(slices: Slices, create: (pool: Pool) => DueWorkReads): DueWorkReads {
  const reads = storesOf(create);
  return {
    async crawlersWithWork(crawlerIds, now) {
      const lists = await ofAll(
        slices,
        async (slice) => await reads(slice).crawlersWithWork(crawlerIds, now),
      );
      return [...new Set(lists.flat())];
    },
    /** As far as the slice that came least far; what others have told beyond it, they tell again. */
    async dueBetween(from, until, most) {
      const parts = await ofAll(slices, async (slice) => await reads(slice).dueBetween(from, until, most));
      const untilMs = Math.min(until.getTime(), ...parts.map((part) => part.until.getTime()));
      return { work: parts.flatMap(({ work }) => work), until: new Date(untilMs) };
    },
    async openOf(hosts) {
      const groups = bySlice(hosts, (host) => slices.ofHost(host));
      return (
        await Promise.all(groups.map(async ({ slice, values }) => await reads(slice).openOf(values)))
      ).flat();
    },
  };
}

export function slicedPaces(slices: Slices, create: (pool: Pool) => PaceStore): PaceStore {
  const stores = storesOf(create);
  return {
    async dueSlices(crawlerIds, most, now) {
      const counts = await ofAll(
        slices,
        async (slice) => await stores(slice).dueSlices(crawlerIds, most, now),
      );
      if (counts.length === 1) return counts[0]!;
      const sum = (crawlerId: CrawlerId) =>
        counts.reduce((total, count) => total + (count.get(crawlerId) ?? 0), 0);
      return new Map(crawlerIds.map((crawlerId) => [crawlerId, Math.min(most, sum(crawlerId))]));
    },
    told: async (told) => await stores(slices.open[0]!).told(told),
  };
}
