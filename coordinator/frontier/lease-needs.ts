/** What a request for leases has to look at, asked at once, so that what a crawler has none of costs it nothing. */
import type { PoolClient } from "pg";
import { prepared } from "../database/transaction.ts";
import { type Partition, partitionOf } from "../domain-sets/partition.ts";
import type { LeaseRequest } from "./due-host-reads.ts";

export interface LeaseNeeds {
  /** What the crawler's hosts must be held by: its domain sets, after those that the request names. */
  readonly partition: Partition;
  readonly hasFinerDelegations: boolean;
  /** Whether any channel knows texts that leases may say (channels/known-texts). */
  readonly hasKnownTexts: boolean;
  /** Whether any channel knows links that leases may say (channels/known-links). */
  readonly hasKnownLinks: boolean;
}

interface NeedsRow {
  readonly operator: string[];
  readonly partner: string[];
  readonly finer: boolean;
  readonly known: boolean;
  readonly linked: boolean;
}

export async function leaseNeeds(
  client: PoolClient,
  { crawlerId, partition = [] }: LeaseRequest,
): Promise<LeaseNeeds> {
  const { rows } = await prepared<NeedsRow>(
    client,
    `select c.domain_sets as operator, c.partner_domain_sets as partner,
       exists (select from finer_delegation f where f.crawler_id = c.crawler_id) as finer,
       exists (select from channel where duplicate_share > 0) as known,
       exists (select from channel_link) as linked
     from crawler c
     where c.crawler_id = $1`,
    [crawlerId],
  );
  const row = rows[0];
  if (row === undefined)
    return { partition, hasFinerDelegations: false, hasKnownTexts: false, hasKnownLinks: false };
  return {
    partition: [...partition, ...partitionOf(row.operator, row.partner)],
    hasFinerDelegations: row.finer,
    hasKnownTexts: row.known,
    hasKnownLinks: row.linked,
  };
}
