/** Subnets of which their crawler may have nothing by its domain sets. */
import type { Pool } from "pg";
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { heldSql } from "./held-sql.ts";
import type { Partition } from "./partition.ts";

/** Of those given, that are the crawler's and hold hosts of which none is in the partition. */
export async function holdsNothingOf(
  pool: Pool,
  { crawlerId, partition }: { readonly crawlerId: CrawlerId; readonly partition: Partition },
  subnetIds: readonly SubnetId[],
): Promise<SubnetId[]> {
  const held = heldSql(partition, "h", 3);
  const { rows } = await pool.query<{ subnet_id: number }>(
    `select d.subnet_id
     from delegation d
     where d.subnet_id = any($2::int[])
       and d.crawler_id = $1
       and exists (
         select from frontier_host h
         where h.subnet_id = d.subnet_id and h.state = 'resolved' and h.due_at is not null
       )
       and not exists (
         select from frontier_host h
         where h.subnet_id = d.subnet_id
           and h.state = 'resolved'
           and h.due_at is not null
           and h.opt_out_id is null
           and ${held.condition}
       )
     order by d.subnet_id`,
    [crawlerId, subnetIds, ...held.values],
  );
  return rows.map((row) => asSubnetId(row.subnet_id));
}
