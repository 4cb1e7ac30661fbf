/** Probe rounds as they were recorded, and the changes of a subnet's delegation. */

import type { Pool } from "pg";
import type { RoundCause } from "#core/delegation-cause";
import { type CrawlerJson, crawlerJson } from "../crawlers/crawler-store.ts";
import { iso, roundMs } from "../database/cached-read.ts";
import type { DelegationChange, RecordedRound, RoundProbe } from "./rounds-api.ts";

/**
 * Of rounds of whole subnets, decided by measurements of one method. Anycast is given away by load, and where a crawler
 * kept its subnet for what was known of it, the measurements say too little: both teach nothing.
 */
export const decidedByMeasuring = `subnet_id is not null
  and crawler_id is not null
  and method is not null
  and reason ->> 'type' not in ('anycast', 'kept')`;

/** SQL: the crawler of that probe is where it was when that round began; what it measured from elsewhere is void. */
export const isFromHere = (probe: string, round: string) =>
  `not exists (select from crawler moved where moved.crawler_id = ${probe}.crawler_id and moved.placed_at > ${round}.started_at)`;

interface RoundRow {
  round_id: number;
  subnet_id: number;
  cause: RoundCause;
  policy: string;
  parameters: Record<string, unknown>;
  target_url: string;
  target_address: string;
  started_at: Date;
  decided_at: Date;
  crawler: CrawlerJson | null;
  runner_up: CrawlerJson | null;
  reason: Record<string, unknown>;
}

const roundSelect = `
  select p.round_id, coalesce(p.subnet_id, p.within_subnet_id) as subnet_id, p.cause, p.policy, p.parameters, p.target_url,
    host(p.target_address) as target_address, p.started_at, p.decided_at, p.reason,
    ${crawlerJson("c")} as crawler, ${crawlerJson("r")} as runner_up
  from probe_round p
  left join crawler c using (crawler_id)
  left join crawler r on r.crawler_id = p.runner_up_id`;

export async function roundById(pool: Pool, roundId: number): Promise<RecordedRound | null> {
  const { rows } = await pool.query<RoundRow>(`${roundSelect} where p.round_id = $1`, [roundId]);
  return rows[0] ? withProbes(pool, rows[0]) : null;
}

export async function latestRoundOf(pool: Pool, subnetId: number): Promise<RecordedRound | null> {
  const { rows } = await pool.query<RoundRow>(
    `${roundSelect}
     where p.subnet_id = $1
     order by p.decided_at desc, p.round_id desc
     limit 1`,
    [subnetId],
  );
  return rows[0] ? withProbes(pool, rows[0]) : null;
}

async function withProbes(pool: Pool, row: RoundRow): Promise<RecordedRound> {
  const { rows } = await pool.query<Omit<RoundProbe, "rttMs"> & { rtt_ms: number | null }>(
    `select ordinal, ${crawlerJson("c")} as crawler, method, outcome, rtt_ms, detail
     from probe
     join crawler c using (crawler_id)
     where round_id = $1
     order by ordinal
     limit 1000`,
    [row.round_id],
  );
  return {
    roundId: row.round_id,
    subnetId: row.subnet_id,
    cause: row.cause,
    policy: row.policy,
    parameters: row.parameters,
    targetUrl: row.target_url,
    targetAddress: row.target_address,
    startedAt: iso(row.started_at),
    decidedAt: iso(row.decided_at),
    crawler: row.crawler,
    runnerUp: row.runner_up,
    reason: row.reason,
    probes: rows.map(({ rtt_ms, ...probe }) => ({ ...probe, rttMs: roundMs(rtt_ms) })),
  };
}

/** Who had this subnet before, newest change first. */
export async function historyOf(pool: Pool, subnetId: number, limit: number): Promise<DelegationChange[]> {
  const { rows } = await pool.query<Omit<DelegationChange, "changedAt"> & { changed_at: Date }>(
    `select h.subnet_id as "subnetId", h.changed_at, f.name as "from", t.name as "to", h.cause,
       r.round_id as "roundId", h.reason
     from delegation_history h
     left join probe_round r on r.round_id = h.round_id
     left join crawler f on f.crawler_id = h.from_crawler_id
     left join crawler t on t.crawler_id = h.to_crawler_id
     where h.subnet_id = $1
     order by h.changed_at desc
     limit $2`,
    [subnetId, limit],
  );
  return rows.map(({ changed_at, ...change }) => ({ ...change, changedAt: iso(changed_at) }));
}
