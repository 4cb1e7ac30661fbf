/** What is due, over slices: for crawlers that wait for work, and for the pace that crawlers are told. */
import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import { bySlice, ofAll, type Slices } from "../database/slices.ts";
import type { DueWorkReads } from "../frontier/due-work-reads.ts";
import type { PaceStore } from "../frontier/pace.ts";
import { storesOf } from "./sliced-frontier-store.ts";

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
