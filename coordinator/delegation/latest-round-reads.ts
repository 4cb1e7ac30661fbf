/** What the latest probe rounds measured: tables probe_round and probe. */
import type { Pool } from "pg";
import { asCrawlerId, asSubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import type { MeasuredRound } from "./delegation.ts";

/** Rounds of whole subnets, decided by measurements of the method that was compared; anycast ones teach nothing. */
export async function latestRounds(pool: Pool, limit: number): Promise<MeasuredRound[]> {
  const { rows } = await pool.query<LatestRow>(
    `with latest as (
       select round_id, subnet_id, method
       from probe_round
       where subnet_id is not null
         and crawler_id is not null
         and method is not null
         and reason ->> 'type' <> 'anycast'
       order by round_id desc
       limit $1
     )
     select l.subnet_id, l.method,
       array_agg(p.crawler_id order by p.ordinal) as crawler_ids,
       array_agg(p.rtt_ms order by p.ordinal) as rtts_ms
     from latest l
     join probe p on p.round_id = l.round_id and p.method = l.method and p.rtt_ms is not null
     group by l.round_id, l.subnet_id, l.method
     order by l.round_id`,
    [limit],
  );
  return rows.map(roundOf);
}

interface LatestRow {
  subnet_id: number;
  method: ProbeMethod;
  crawler_ids: number[];
  rtts_ms: number[];
}

function roundOf(row: LatestRow): MeasuredRound {
  const probes = row.crawler_ids.map((id, at) => ({ crawlerId: asCrawlerId(id), rttMs: row.rtts_ms[at]! }));
  return { subnetId: asSubnetId(row.subnet_id), method: row.method, probes };
}
