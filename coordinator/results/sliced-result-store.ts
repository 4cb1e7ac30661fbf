/**
 * Results over slices: each is stored in the slice that gave its lease, in one transaction for all of a slice's. At-least-once
 * stays exactly-once: every slice has the highest sequence that it has taken of a spool, and the batch as a whole is
 * acknowledged by slice 0, which comes last, so that a batch that was ended between two slices comes again.
 */
import type { Pool } from "pg";
import type { LeaseId } from "#core/ids";
import { bySlice, ofAll, type Slices, storesOf } from "../database/slices.ts";
import { isLeaseNumber } from "../frontier/lease-end-writes.ts";
import type { ResultStore, TakenResults } from "./accepted-result.ts";
import { sumOfTaken } from "./result-store.ts";

export function slicedResults(slices: Slices, create: (pool: Pool) => ResultStore): ResultStore {
  const stores = storesOf(create);
  const sliceOf = (leaseId: LeaseId) => slices.ofNumber(isLeaseNumber(leaseId) ? leaseId : "0");
  return {
    async take(batch) {
      const [first] = slices.open;
      if (slices.open.length === 1) return await stores(first!).take(batch);
      const groups = bySlice(batch.results, ({ leaseId }) => sliceOf(leaseId));
      const others = groups.filter(({ slice }) => slice !== first);
      const own = groups.find(({ slice }) => slice === first)?.values ?? [];
      const taken: TakenResults[] = await Promise.all(
        others.map(
          async ({ slice, values }) => await stores(slice).take({ ...batch, results: values, seals: [] }),
        ),
      );
      taken.push(await stores(first!).take({ ...batch, results: own }));
      return taken.reduce(sumOfTaken);
    },
    async fetchesSince(since) {
      const sums = new Map<number, Awaited<ReturnType<ResultStore["fetchesSince"]>>[number]>();
      const lists = await ofAll(slices, async (slice) => await stores(slice).fetchesSince(since));
      for (const one of lists.flat()) {
        const known = sums.get(one.crawlerId);
        sums.set(
          one.crawlerId,
          known === undefined
            ? one
            : { ...one, pages: known.pages + one.pages, bytes: known.bytes + one.bytes },
        );
      }
      return [...sums.values()].sort((a, b) => a.crawlerId - b.crawlerId);
    },
    async recentFetches(hosts, perHost) {
      const groups = bySlice(hosts, (host) => slices.ofHost(host));
      const lists = await Promise.all(
        groups.map(async ({ slice, values }) => await stores(slice).recentFetches(values, perHost)),
      );
      return lists.flat();
    },
  };
}
