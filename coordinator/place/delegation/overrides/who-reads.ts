/** Finer delegations for `who`. */

import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { rangeText } from "#db/range-text";
import { iso, roundMs } from "../../../database/cached-read.ts";
import { crawlerJson } from "../../crawlers/crawler-store.ts";
import type { FinerReport } from "../rounds-api.ts";

type FinerRow = Omit<FinerReport, "type" | "range" | "since" | "foundAt"> & {
  readonly first: string | null;
  readonly last: string | null;
  readonly delegated: Date;
  readonly found: Date;
};

/** A deleted crawler keeps its place among the answers without a name. */
const finerSelect = `
  select f.subnet_id as "subnetId", h.host, host(f.first_address) as first, host(f.last_address) as last,
    ${crawlerJson("c")} as crawler, ${crawlerJson("r")} as "runnerUp", f.measured, f.rtt_ms as "rttMs",
    f.runner_up_rtt_ms as "runnerUpRttMs", f.subnet_rtt_ms as "subnetRttMs", f.cause, f.found_at as found,
    f.delegated_at as delegated, f.round_id as "roundId",
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

/** The host's own or its part's; null when its subnet's delegation applies. */
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

function finerReport({ first, last, delegated, found, ...finer }: FinerRow): FinerReport {
  return {
    ...finer,
    type: first === null ? "host" : "part",
    range: first === null || last === null ? null : rangeText(first, last),
    rttMs: roundMs(finer.rttMs),
    runnerUpRttMs: roundMs(finer.runnerUpRttMs),
    subnetRttMs: roundMs(finer.subnetRttMs),
    since: iso(delegated),
    foundAt: iso(found),
  };
}
