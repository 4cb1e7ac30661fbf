/**
 * Table site_touch: which hosts a batch of results was of, and what it adds to their counts. One row, appended: the list of
 * sites takes it from there (sites/sites-upkeep-store.ts), and no result waits for the list.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { columnsOf } from "../database/transaction.ts";
import { type Batch, fetchedAtOf } from "./result-rows.ts";

interface TouchedSite {
  readonly hostHash: HostHash;
  fetches: number;
  failures: number;
  /** Null: nothing was fetched, all was refused. */
  fetchedAt: Date | null;
}

export async function touchSites(client: PoolClient, batch: Batch): Promise<void> {
  const touched = touchedBy(batch);
  if (touched.length === 0) return;
  await client.query(
    `insert into site_touch (host_hashes, fetches, failures, fetched_at)
     values ($1::bigint[], $2::int[], $3::int[], $4::timestamptz[])`,
    columnsOf(touched, ["hostHash", "fetches", "failures", "fetchedAt"]),
  );
}

function touchedBy({ results, now }: Batch): TouchedSite[] {
  const touched = new Map<HostHash, TouchedSite>();
  for (const { key, result } of results) {
    const { type } = result.outcome;
    const site = touched.get(key.hostHash) ?? {
      hostHash: key.hostHash,
      fetches: 0,
      failures: 0,
      fetchedAt: null,
    };
    touched.set(key.hostHash, site);
    if (type === "refused-by-robots" || type === "refused-address") continue;
    const fetchedAt = fetchedAtOf(result, now);
    site.fetches += 1;
    site.failures += type === "failed" ? 1 : 0;
    if (site.fetchedAt === null || fetchedAt > site.fetchedAt) site.fetchedAt = fetchedAt;
  }
  return [...touched.values()];
}
