/** Table accuracy_sample: delegated subnets that every crawler measured, to see how near their crawlers are. */
import type { Pool } from "pg";
import { rangeText } from "#db/range-text";
import type { ProbeMethod } from "#protocol/messages";
import { iso, roundMs } from "../database/cached-read.ts";
import {
  type AccuracyCounts,
  type AccuracySample,
  type AccuracySampleEntry,
  type AccuracyStore,
  nearlyBestMs,
} from "./accuracy.ts";

export function createAccuracyStore(pool: Pool): AccuracyStore {
  return {
    add: async (sample) => await add(pool, sample),
    wasSampled: async (address, after) => {
      const { rowCount } = await pool.query(
        "select from accuracy_sample where target_address = $1 and sampled_at > $2 limit 1",
        [address, after],
      );
      return rowCount !== 0;
    },
    lastSampledAt: async () => {
      const { rows } = await pool.query<{ at: Date | null }>(
        "select max(sampled_at) as at from accuracy_sample",
      );
      return rows[0]?.at ?? null;
    },
    counts: async (after) => await counts(pool, after),
    list: async (query) => await list(pool, query),
    hours: async (since, until) => await hours(pool, since, until),
    forget: async (before) => {
      const { rowCount } = await pool.query("delete from accuracy_sample where sampled_at < $1", [before]);
      return rowCount ?? 0;
    },
  };
}

/** A sample whose crawlers or subnet were removed meanwhile is dropped. */
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

/** SQL: the owner was nearly the best; never null where anybody got an answer. */
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

async function hours(
  pool: Pool,
  since: Date,
  until: Date,
): Promise<(AccuracyCounts & { readonly hour: Date })[]> {
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

interface SampleRow {
  first_address: string;
  last_address: string;
  name: string;
  country: string | null;
  target_address: string;
  target_host: string;
  method: ProbeMethod;
  owner: string;
  owner_rtt_ms: number | null;
  best: string | null;
  best_rtt_ms: number | null;
  asked: number;
  answered: number;
  sampled_at: Date;
}

async function list(pool: Pool, query: Parameters<AccuracyStore["list"]>[0]): Promise<AccuracySampleEntry[]> {
  const { rows } = await pool.query<SampleRow>(
    `select host(s.first_address) as first_address, host(s.last_address) as last_address, s.name, s.country,
       host(a.target_address) as target_address, a.target_host, a.method, o.name as owner, a.owner_rtt_ms,
       b.name as best, a.best_rtt_ms, a.asked, a.answered, a.sampled_at
     from accuracy_sample a
     join subnet s using (subnet_id)
     join crawler o on o.crawler_id = a.owner_id
     left join crawler b on b.crawler_id = a.best_id
     where a.sampled_at > $1 and (not $3 or (a.best_id is not null and not ${isNear}))
     order by a.sampled_at desc, a.sample_id desc
     limit $2`,
    [query.after, query.most, query.farOnly],
  );
  return rows.map((row) => ({
    range: rangeText(row.first_address, row.last_address),
    name: row.name,
    country: row.country,
    targetAddress: row.target_address,
    targetHost: row.target_host,
    method: row.method,
    owner: row.owner,
    ownerRttMs: roundMs(row.owner_rtt_ms),
    best: row.best,
    bestRttMs: roundMs(row.best_rtt_ms),
    asked: row.asked,
    answered: row.answered,
    sampledAt: iso(row.sampled_at),
  }));
}
