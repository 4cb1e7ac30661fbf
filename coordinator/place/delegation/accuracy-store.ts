/** Table accuracy_sample: delegated subnets measured by every crawler, which show how near the owners are. */
import type { Pool } from "pg";
import { rangeText } from "#db/range-text";
import { iso, roundMs } from "../../database/cached-read.ts";
import {
  type AccuracyCounts,
  type AccuracySample,
  type AccuracySampleEntry,
  nearlyBestMs,
} from "./delegation.ts";

export type AccuracyStore = ReturnType<typeof createAccuracyStore>;

export function createAccuracyStore(pool: Pool) {
  return {
    add: async (sample: AccuracySample) => await add(pool, sample),
    /** Whether this address was part of a sample after then. */
    wasSampled: async (address: string, after: Date) => {
      const text = "select from accuracy_sample where target_address = $1 and sampled_at > $2 limit 1";
      return (await pool.query(text, [address, after])).rowCount !== 0;
    },
    lastSampledAt: async () => {
      const text = "select max(sampled_at) as at from accuracy_sample";
      return (await pool.query<{ at: Date | null }>(text)).rows[0]?.at ?? null;
    },
    counts: async (after: Date) => await counts(pool, after),
    /** Latest first; `farOnly` selects samples whose owner was not nearly the best. */
    list: async (query: SampleQuery) => await list(pool, query),
    /** Results per UTC hour with samples, oldest first. */
    hours: async (since: Date, until: Date) => await hours(pool, since, until),
    /** Returns how many were removed. */
    forget: async (before: Date) =>
      (await pool.query("delete from accuracy_sample where sampled_at < $1", [before])).rowCount ?? 0,
  };
}

/** Drops the sample when one of its crawlers or its subnet has been removed meanwhile. */
async function add(pool: Pool, sample: AccuracySample): Promise<void> {
  await pool.query(
    `insert into accuracy_sample (subnet_id, target_address, target_host, method, owner_id, owner_rtt_ms, best_id,
       best_rtt_ms, asked, answered, sampled_at)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
     where exists (select from subnet where subnet_id = $1)
       and exists (select from crawler where crawler_id = $5)
       and ($7::int is null or exists (select from crawler where crawler_id = $7))`,
    [
      sample.subnetId,
      sample.targetAddress,
      sample.targetHost,
      sample.method,
      sample.ownerId,
      sample.ownerRttMs,
      sample.bestId,
      sample.bestRttMs,
      sample.asked,
      sample.answered,
      sample.sampledAt,
    ],
  );
}

/** SQL: the owner was nearly the best; not null once anybody answered. */
const isNear = `coalesce(owner_rtt_ms - best_rtt_ms <= ${nearlyBestMs}, false)`;

async function counts(pool: Pool, after: Date): Promise<AccuracyCounts> {
  const { rows } = await pool.query<AccuracyCounts>(
    `select count(*)::int as samples, count(*) filter (where ${isNear})::int as "nearlyBest"
     from accuracy_sample
     where sampled_at > $1 and best_id is not null`,
    [after],
  );
  return rows[0]!;
}

async function hours(pool: Pool, since: Date, until: Date) {
  const { rows } = await pool.query<AccuracyCounts & { readonly hour: Date }>(
    `select date_trunc('hour', sampled_at, 'UTC') as hour, count(*)::int as samples,
       count(*) filter (where ${isNear})::int as "nearlyBest"
     from accuracy_sample
     where sampled_at >= $1 and sampled_at <= $2 and best_id is not null
     group by 1
     order by 1`,
    [since, until],
  );
  return rows;
}

interface SampleQuery {
  readonly after: Date;
  readonly most: number;
  readonly farOnly: boolean;
}

type SampleRow = Omit<AccuracySampleEntry, "range" | "sampledAt"> & {
  readonly first: string;
  readonly last: string;
  readonly at: Date;
};

async function list(pool: Pool, query: SampleQuery): Promise<AccuracySampleEntry[]> {
  const { rows } = await pool.query<SampleRow>(
    `select host(s.first_address) as first, host(s.last_address) as last, s.name, s.country,
       host(a.target_address) as "targetAddress", a.target_host as "targetHost", a.method, o.name as owner,
       a.owner_rtt_ms as "ownerRttMs", b.name as best, a.best_rtt_ms as "bestRttMs", a.asked, a.answered,
       a.sampled_at as at
     from accuracy_sample a
     join subnet s using (subnet_id)
     join crawler o on o.crawler_id = a.owner_id
     left join crawler b on b.crawler_id = a.best_id
     where a.sampled_at > $1 and (not $3 or (a.best_id is not null and not ${isNear}))
     order by a.sampled_at desc, a.sample_id desc
     limit $2`,
    [query.after, query.most, query.farOnly],
  );
  return rows.map(({ first, last, at, ownerRttMs, bestRttMs, ...sample }) => ({
    ...sample,
    range: rangeText(first, last),
    ownerRttMs: roundMs(ownerRttMs),
    bestRttMs: roundMs(bestRttMs),
    sampledAt: iso(at),
  }));
}
