/** Delegations finer than a subnet, as `who` tells them. */

import type { Pool } from "pg";
import type { DelegationCause } from "#core/delegation-cause";
import type { HostHash } from "#core/ids";
import { rangeText } from "#db/range-text";
import { type CrawlerJson, crawlerJson } from "../../crawlers/crawler-store.ts";
import { iso, roundMs } from "../../database/cached-read.ts";
import type { FinerReport } from "../rounds-api.ts";

interface FinerRow {
  subnet_id: number;
  host: string | null;
  first_address: string | null;
  last_address: string | null;
  crawler: CrawlerJson;
  runner_up: CrawlerJson | null;
  measured: boolean;
  rtt_ms: number | null;
  runner_up_rtt_ms: number | null;
  subnet_rtt_ms: number | null;
  cause: DelegationCause;
  found_at: Date;
  delegated_at: Date;
  round_id: number;
  seen: FinerReport["seen"];
}

/** Crawlers are named in what was seen; one that is deleted keeps its place without a name. */
const finerSelect = `
  select f.subnet_id, h.host, host(f.first_address) as first_address, host(f.last_address) as last_address,
    ${crawlerJson("c")} as crawler, ${crawlerJson("r")} as runner_up,
    f.measured, f.rtt_ms, f.runner_up_rtt_ms, f.subnet_rtt_ms, f.cause, f.found_at, f.delegated_at, f.round_id,
    (select coalesce(json_agg(json_build_object(
         'crawler', case when s.value->>'crawlerId' is null then null
                         else coalesce(v.name, 'crawler ' || (s.value->>'crawlerId')) end,
         'addresses', s.value->'addresses') order by s.ordinality), '[]')
     from jsonb_array_elements(f.seen) with ordinality as s
     left join crawler v on v.crawler_id = (s.value->>'crawlerId')::int) as seen
  from finer_delegation f
  join crawler c on c.crawler_id = f.crawler_id
  left join crawler r on r.crawler_id = f.runner_up_id
  left join frontier_host h on h.host_hash = f.host_hash`;

/** Its own, or that of the part in which its first address lies; null where its subnet's is in force. */
export async function finerOfHost(pool: Pool, hostHash: HostHash): Promise<FinerReport | null> {
  const { rows } = await pool.query<FinerRow>(
    `${finerSelect} where f.finer_id = (select finer_id from frontier_host where host_hash = $1)`,
    [hostHash],
  );
  return rows[0] ? finerReport(rows[0]) : null;
}

export async function partsOf(pool: Pool, subnetId: number): Promise<FinerReport[]> {
  const { rows } = await pool.query<FinerRow>(
    `${finerSelect}
     where f.subnet_id = $1 and f.host_hash is null
     order by f.first_address
     limit 100`,
    [subnetId],
  );
  return rows.map(finerReport);
}

function finerReport(row: FinerRow): FinerReport {
  const { first_address: first, last_address: last } = row;
  return {
    type: first === null ? "host" : "part",
    subnetId: row.subnet_id,
    range: first === null || last === null ? null : rangeText(first, last),
    host: row.host,
    crawler: row.crawler,
    measured: row.measured,
    rttMs: roundMs(row.rtt_ms),
    runnerUp: row.runner_up,
    runnerUpRttMs: roundMs(row.runner_up_rtt_ms),
    subnetRttMs: roundMs(row.subnet_rtt_ms),
    cause: row.cause,
    since: iso(row.delegated_at),
    foundAt: iso(row.found_at),
    roundId: row.round_id,
    seen: row.seen,
  };
}
