/** Table accuracy_sample: delegated subnets measured by every crawler, which show how near the owners are. */
import type { Pool } from "pg";
import { rangeText } from "#db/range-text";
import { readRows, roundMs, toldRows } from "../../database/cached-read.ts";
import {
  type AccuracyCounts,
  type AccuracySample,
  type AccuracySampleEntry,
  nearlyBestMs,
} from "./delegation.ts";

/** SQL: the owner was nearly the best. Not null once any crawler answered. */
const isNear = `coalesce(owner_rtt_ms - best_rtt_ms <= ${nearlyBestMs}, false)`;

const counted = `count(*)::int as samples, count(*) filter (where ${isNear})::int as "nearlyBest"`;

export type AccuracyStore = ReturnType<typeof createAccuracyStore>;

export function createAccuracyStore(pool: Pool) {
  return {
    /** Drops the sample if one of its crawlers or its subnet has been removed meanwhile. */
    add: async (sample: AccuracySample): Promise<void> => {
      await pool.query(
        `insert into accuracy_sample (subnet_id, target_address, target_host, method, owner_id, owner_rtt_ms, best_id,
           best_rtt_ms, asked, answered, sampled_at)
         select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
         where exists (select from subnet where subnet_id = $1)
           and exists (select from crawler where crawler_id = $5)
           and ($7::int is null or exists (select from crawler where crawler_id = $7))`,
        sampleColumns.map((name) => sample[name]),
      );
    },
    wasSampled: async (address: string, after: Date) => {
      const text = "select from accuracy_sample where target_address = $1 and sampled_at > $2 limit 1";
      return (await pool.query(text, [address, after])).rowCount !== 0;
    },
    lastSampledAt: async () => {
      const text = "select max(sampled_at) as at from accuracy_sample";
      return (await pool.query<{ at: Date | null }>(text)).rows[0]?.at ?? null;
    },
    counts: async (after: Date): Promise<AccuracyCounts> => {
      const text = `select ${counted} from accuracy_sample where sampled_at > $1 and best_id is not null`;
      return (await readRows<AccuracyCounts>(pool, text, [after]))[0]!;
    },
    /** Latest first. `farOnly` selects samples whose owner was not nearly the best. */
    list: async ({ after, most, farOnly }: SampleQuery) => {
      const rows = await toldRows<SampleRow>(pool, selectSamples, [after, most, farOnly]);
      return rows.map(
        ({ first, last, ...sample }): AccuracySampleEntry => ({
          ...sample,
          range: rangeText(first, last),
          ownerRttMs: roundMs(sample.ownerRttMs),
          bestRttMs: roundMs(sample.bestRttMs),
        }),
      );
    },
    /** Results per UTC hour with samples, oldest first. */
    hours: async (since: Date, until: Date) =>
      await readRows<AccuracyCounts & { readonly hour: Date }>(
        pool,
        `select date_trunc('hour', sampled_at, 'UTC') as hour, ${counted}
         from accuracy_sample
         where sampled_at >= $1 and sampled_at <= $2 and best_id is not null
         group by 1
         order by 1`,
        [since, until],
      ),
    forget: async (before: Date) =>
      (await pool.query("delete from accuracy_sample where sampled_at < $1", [before])).rowCount ?? 0,
  };
}

const sampleColumns = [
  ...(["subnetId", "targetAddress", "targetHost", "method", "ownerId", "ownerRttMs"] as const),
  ...(["bestId", "bestRttMs", "asked", "answered", "sampledAt"] as const),
];

interface SampleQuery {
  readonly after: Date;
  readonly most: number;
  readonly farOnly: boolean;
}

type SampleRow = Omit<AccuracySampleEntry, "range"> & Readonly<Record<"first" | "last", string>>;

const selectSamples = `
  select host(s.first_address) as first, host(s.last_address) as last, s.name, s.country,
    host(a.target_address) as "targetAddress", a.target_host as "targetHost", a.method, o.name as owner,
    a.owner_rtt_ms as "ownerRttMs", b.name as best, a.best_rtt_ms as "bestRttMs", a.asked, a.answered,
    a.sampled_at as "sampledAt"
  from accuracy_sample a
  join subnet s using (subnet_id)
  join crawler o on o.crawler_id = a.owner_id
  left join crawler b on b.crawler_id = a.best_id
  where a.sampled_at > $1 and (not $3 or (a.best_id is not null and not ${isNear}))
  order by a.sampled_at desc, a.sample_id desc
  limit $2`;
