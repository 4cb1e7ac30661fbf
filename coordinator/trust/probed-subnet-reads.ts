/** What crawlers reported of subnets, to be held against each other: tables probe_round and probe. */
import type { Pool } from "pg";
import { asCrawlerId, asSubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import type { ProbedSubnet } from "./probe-plausibility.ts";

/** Rounds that are looked at; what is older says nothing that they do not. */
const mostRounds = 20_000;

/**
 * The latest round of each subnet, by method. Without anycast ranges, which answer from many places; and without
 * reports of crawlers that are not believed already, or from before an operator believed them again.
 */
export async function probedSubnets(
  pool: Pool,
  since: Date,
): Promise<ReadonlyMap<ProbeMethod, readonly ProbedSubnet[]>> {
  const { rows } = await pool.query<{
    subnet_id: number;
    method: ProbeMethod;
    crawler_ids: number[];
    rtts_ms: number[];
  }>(
    `with latest as (
       select distinct on (subnet_id) subnet_id, round_id, method, decided_at
       from (
         select subnet_id, round_id, method, decided_at, reason
         from probe_round
         where subnet_id is not null and method is not null and decided_at >= $1
         order by round_id desc
         limit ${mostRounds}
       ) r
       where reason ->> 'type' <> 'anycast'
         and not exists (select from delegation d where d.subnet_id = r.subnet_id and d.anycast)
       order by subnet_id, round_id desc
     )
     select l.subnet_id, l.method,
       array_agg(p.crawler_id order by p.ordinal) as crawler_ids,
       array_agg(p.rtt_ms order by p.ordinal) as rtts_ms
     from latest l
     join probe p on p.round_id = l.round_id and p.method = l.method and p.rtt_ms is not null and p.how = 'probe'
     left join crawler_trust t on t.crawler_id = p.crawler_id
     where t.probes_doubted_at is null and l.decided_at >= coalesce(t.restored_at, '-infinity')
     group by l.subnet_id, l.method
     having count(distinct p.crawler_id) > 1`,
    [since],
  );
  const byMethod = new Map<ProbeMethod, ProbedSubnet[]>();
  for (const { subnet_id, method, crawler_ids, rtts_ms } of rows) {
    const probes = crawler_ids.map((id, at) => ({ crawlerId: asCrawlerId(id), rttMs: rtts_ms[at]! }));
    const subnets = byMethod.get(method) ?? [];
    subnets.push({ subnetId: asSubnetId(subnet_id), probes });
    byMethod.set(method, subnets);
  }
  return byMethod;
}
