/** Counts a crawler's due work as far as needed to decide its pace, and stores what it was told. */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import { partitionsOfLeases } from "../../place/domain-sets/domain-set-store.ts";
import { isHeld, type Partition, withHeldHosts } from "../../place/domain-sets/partition.ts";

export type PaceStore = ReturnType<typeof createPaceStore>;

/** `own` are the coordinator's domain sets, which apply to every crawler. */
export function createPaceStore(pool: Pool, own: Partition = []) {
  return {
    /** Each crawler's host slices that are due or leased, counted up to `most`. */
    dueSlices: async (crawlerIds: readonly CrawlerId[], most: number, now: Date) =>
      await dueSlices(pool, crawlerIds, { most, now, own }),
    /** Stores the last pace sent; one per crawler. */
    told: async (told: readonly ToldPace[]): Promise<void> => await noteTold(pool, told),
  };
}

export interface ToldPace {
  readonly crawlerId: CrawlerId;
  readonly pace: WorkPace;
  /** Host slices due or leased, capped as the rule needs. */
  readonly due: number;
  readonly at: Date;
}

/** As in messages (protocol/coordinator-messages). */
export type WorkPace = "slow-down" | "steady" | "hurry-up";

const isDue = `h.state = 'resolved'
         and h.lease_id is null
         and h.due_at is not null
         and greatest(h.due_at, h.not_before) <= $2
         and ${isHeld("h")}`;

interface Counting {
  readonly most: number;
  readonly now: Date;
  readonly own: Partition;
}

/** Crawlers without domain sets are counted in one statement, the others one by one. */
async function dueSlices(
  pool: Pool,
  crawlerIds: readonly CrawlerId[],
  { most, now, own }: Counting,
): Promise<ReadonlyMap<CrawlerId, number>> {
  return await inTransaction(pool, async (client) => {
    const slices = new Map<CrawlerId, number>();
    const alike: CrawlerId[] = [];
    for (const [crawlerId, partition] of await partitionsOfLeases(client, crawlerIds, own)) {
      if (partition.length === 0) alike.push(crawlerId);
      else for (const row of await count(client, [crawlerId], { most, now, partition })) slices.set(...row);
    }
    for (const row of await count(client, alike, { most, now, partition: [] })) slices.set(...row);
    return slices;
  });
}

async function count(
  client: PoolClient,
  crawlerIds: readonly CrawlerId[],
  { most, now, partition }: Omit<Counting, "own"> & { readonly partition: Partition },
): Promise<(readonly [CrawlerId, number])[]> {
  if (crawlerIds.length === 0) return [];
  const { text, values } = withHeldHosts(
    `select c.crawler_id, counted.slices
     from unnest($1::int[]) as c (crawler_id)
     cross join lateral (
       select count(*)::int as slices
       from (
         (select 1 from lease l where l.crawler_id = c.crawler_id and l.closed_at is null limit $3)
         union all
         (select 1
          from finer_delegation f
          join frontier_host h on h.finer_id = f.finer_id
          where f.crawler_id = c.crawler_id and ${isDue}
          limit $3)
         union all
         (select 1
          from delegation d
          cross join lateral (
            select from frontier_host h where h.subnet_id = d.subnet_id and h.finer_id is null and ${isDue} limit $3
          ) due
          where d.crawler_id = c.crawler_id
          limit $3)
         limit $3
       ) one
     ) counted`,
    partition,
    4,
  );
  const { rows } = await client.query<{ crawler_id: CrawlerId; slices: number }>(text, [
    ...[crawlerIds, now, most],
    ...values,
  ]);
  return rows.map(({ crawler_id, slices }) => [crawler_id, slices]);
}

async function noteTold(pool: Pool, told: readonly ToldPace[]): Promise<void> {
  await pool.query(
    `update crawler c
     set pace = given.pace, pace_due_slices = given.due,
         pace_since = case when c.pace = given.pace then c.pace_since else given.at end
     from unnest($1::int[], $2::text[], $3::int[], $4::timestamptz[]) as given (crawler_id, pace, due, at)
     where c.crawler_id = given.crawler_id`,
    columnsOf(told, ["crawlerId", "pace", "due", "at"]),
  );
}
