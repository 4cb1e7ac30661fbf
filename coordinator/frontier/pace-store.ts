/** How much due work a crawler has, counted no further than it takes to tell its pace; and what it was told. */
import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import { inTransaction } from "../database/transaction.ts";
import { partitionOfLease } from "../domain-sets/domain-set-store.ts";
import { isHeld, type Partition, withHeldHosts } from "../domain-sets/partition.ts";
import type { PaceStore, ToldPace } from "./pace.ts";

/** `own`: the coordinator's own domain sets, which hold for every crawler. */
export function createPaceStore(pool: Pool, own: Partition = []): PaceStore {
  return {
    dueSlices: async (crawlerId, most, now) => await dueSlices(pool, { crawlerId, most, now, own }),
    told: async (crawlerId, told) => await noteTold(pool, crawlerId, told),
  };
}

const isDue = `h.state = 'resolved'
         and h.lease_id is null
         and h.due_at is not null
         and greatest(h.due_at, h.not_before) <= $2
         and ${isHeld("h")}`;

interface CountedFor {
  readonly crawlerId: CrawlerId;
  readonly most: number;
  readonly now: Date;
  readonly own: Partition;
}

async function dueSlices(pool: Pool, { crawlerId, most, now, own }: CountedFor): Promise<number> {
  return await inTransaction(pool, async (client) => {
    const { text, values } = withHeldHosts(
      `select count(*)::int as slices
       from (
         (select 1 from lease where crawler_id = $1 and closed_at is null limit $3)
         union all
         (select 1
          from finer_delegation f
          join frontier_host h on h.finer_id = f.finer_id
          where f.crawler_id = $1 and ${isDue}
          limit $3)
         union all
         (select 1
          from delegation d
          join frontier_host h on h.subnet_id = d.subnet_id and h.finer_id is null
          where d.crawler_id = $1 and ${isDue}
          limit $3)
         limit $3
       ) counted`,
      await partitionOfLease(client, { crawlerId, partition: own }),
      4,
    );
    const { rows } = await client.query<{ slices: number }>(text, [crawlerId, now, most, ...values]);
    return rows[0]!.slices;
  });
}

async function noteTold(pool: Pool, crawlerId: CrawlerId, { pace, due, at }: ToldPace): Promise<void> {
  await pool.query(
    `update crawler
     set pace = $2, pace_due_slices = $3, pace_since = case when pace = $2 then pace_since else $4 end
     where crawler_id = $1`,
    [crawlerId, pace, due, at],
  );
}
