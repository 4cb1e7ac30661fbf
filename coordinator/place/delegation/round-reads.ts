/** Reads recorded probe rounds and the changes of a subnet's delegation. */

import type { Pool } from "pg";
import { iso, roundMs } from "../../database/cached-read.ts";
import { crawlerJson } from "../crawlers/crawler-store.ts";
import type { DelegationChange, RecordedRound, RoundProbe } from "./rounds-api.ts";

/**
 * SQL: rounds of whole subnets, decided by measurements of one method. Anycast rounds and those in which the owner
 * kept its subnet for earlier evidence teach nothing.
 */
export const decidedByMeasuring = `subnet_id is not null
  and crawler_id is not null
  and method is not null
  and reason ->> 'type' not in ('anycast', 'kept')`;

/** SQL: the crawler has not moved since that round began; otherwise its measurements are void. */
export const isFromHere = (probe: string, round: string) =>
  `not exists (select from crawler moved where moved.crawler_id = ${probe}.crawler_id and moved.placed_at > ${round}.started_at)`;

type RoundRow = Omit<RecordedRound, "startedAt" | "decidedAt" | "probes"> & {
  readonly started: Date;
  readonly decided: Date;
};

const roundSelect = `
  select p.round_id as "roundId", coalesce(p.subnet_id, p.within_subnet_id) as "subnetId", p.cause, p.policy,
    p.parameters, p.target_url as "targetUrl", host(p.target_address) as "targetAddress", p.started_at as started,
    p.decided_at as decided, p.reason, ${crawlerJson("c")} as crawler, ${crawlerJson("r")} as "runnerUp"
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

async function withProbes(pool: Pool, { started, decided, ...round }: RoundRow): Promise<RecordedRound> {
  const { rows } = await pool.query<RoundProbe>(
    `select ordinal, ${crawlerJson("c")} as crawler, method, outcome, rtt_ms as "rttMs", detail
     from probe
     join crawler c using (crawler_id)
     where round_id = $1
     order by ordinal
     limit 1000`,
    [round.roundId],
  );
  const probes = rows.map((probe) => ({ ...probe, rttMs: roundMs(probe.rttMs) }));
  return { ...round, startedAt: iso(started), decidedAt: iso(decided), probes };
}

/** Former owners of the subnet, newest change first. */
export async function historyOf(pool: Pool, subnetId: number, limit: number): Promise<DelegationChange[]> {
  const { rows } = await pool.query<Omit<DelegationChange, "changedAt"> & { at: Date }>(
    `select h.subnet_id as "subnetId", h.changed_at as at, f.name as "from", t.name as "to", h.cause,
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
  return rows.map(({ at, ...change }) => ({ ...change, changedAt: iso(at) }));
}
