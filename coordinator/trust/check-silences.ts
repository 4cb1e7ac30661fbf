/**
 * Who was asked for a page once more, had the lease, was connected all the while and shipped nothing: that is an
 * opinion as well, one that says nothing. Else whoever alters pages would only have to let such leases run out.
 *
 * Of a crawler whose session ended meanwhile, of a host that opted out, and where nothing was leased, nothing is said:
 * those comparisons are dropped like any other that nobody made in time.
 */
import type { Pool } from "pg";
import { asCrawlerId, type HostHash, type LeaseId, type UrlHash } from "#core/ids";
import { inTransaction } from "../database/transaction.ts";
import type { ArrivedOpinion, CheckStep, OpenCheck } from "./comparison.ts";
import { lockCheck, writeStep } from "./cross-fetch-verdict-store.ts";

/** After the end of its lease: by then a crawler that is connected has shown it by a heartbeat. */
export const settlingSeconds = 60;
/** Decided at a time; open comparisons are far fewer. */
const mostAtOnce = 1000;

export async function takeSilences(
  pool: Pool,
  step: (check: OpenCheck) => CheckStep,
  now: Date,
): Promise<{ check: OpenCheck; step: CheckStep }[]> {
  const taken: { check: OpenCheck; step: CheckStep }[] = [];
  for (const silence of await silences(pool, now)) {
    const decided = await inTransaction(pool, async (client) => {
      const check = await lockCheck(client, silence);
      if (check === null) return null;
      return { check, step: await writeStep(client, { check, step: step(check), now }) };
    });
    if (decided !== null) taken.push(decided);
  }
  return taken;
}

async function silences(pool: Pool, now: Date): Promise<ArrivedOpinion[]> {
  const { rows } = await pool.query<{
    crawler_id: number;
    lease_id: LeaseId;
    host: string;
    url: string;
    host_hash: HostHash;
    url_hash: UrlHash;
  }>(
    `select l.crawler_id, c.lease_id, c.host, c.url, c.host_hash, c.url_hash
     from double_check c
     join lease l on l.lease_id = c.lease_id
     join crawler w on w.crawler_id = l.crawler_id
     join frontier_host h on h.host_hash = c.host_hash
     where c.verdict is null
       and c.next_by <= $1
       and c.wanted = array[l.crawler_id]
       and c.opinions @> jsonb_build_array(jsonb_build_object('crawlerId', l.crawler_id))
       and l.closed_at <= $1::timestamptz - make_interval(secs => ${settlingSeconds})
       and w.connected_at <= l.granted_at
       and w.last_seen_at >= l.closed_at
       and w.revoked_at is null
       and h.opt_out_id is null
     order by c.next_by, c.check_id
     limit $2`,
    [now, mostAtOnce],
  );
  return rows.map((row) => ({
    crawlerId: asCrawlerId(row.crawler_id),
    leaseId: row.lease_id,
    key: { host: row.host, url: row.url, hostHash: row.host_hash, urlHash: row.url_hash },
    sketch: { kind: "none", digest: null, simhash: null, titleHash: null, links: [], linkCount: 0 },
    fetchedAt: now,
    hostNotBefore: now,
  }));
}
