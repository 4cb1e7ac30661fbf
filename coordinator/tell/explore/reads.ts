/** What the explorer reads from the database: delegation times, loads, holders. */
import type { Pool } from "pg";
import { asSubnetId, type HolderId, type SubnetId } from "#core/ids";
import { type CopiedRow, readCopy } from "#db/copy";
import type { SubnetLoad } from "../../place/delegation/delegation.ts";

const mostHoldersCalled = 50;

/** The usual pace is one page per second and host (subnet-loads). */
const mostPagesPerHost = 86_400;

export type ExploreReads = ReturnType<typeof createExploreReads>;

/** Reads data that the coordinator's memory does not hold. */
export function createExploreReads(pool: Pool) {
  return {
    /** Returns subnets that answer from many places. */
    anycastSubnets: async () => await subnetIds(pool, "select subnet_id from delegation where anycast"),
    /** Visits the daily fetches of subnets with hosts, if every page is fetched once in `recrawlDays`. */
    eachLoad: async (recrawlDays: number, visit: (load: ExploredLoad) => void) => {
      await copied(pool, loadsSql(recrawlDays), (row) =>
        visit({ subnetId: asSubnetId(row.int32(0)), pagesPerDay: row.float32(1), dueHosts: row.int32(2) }),
      );
    },
    /** Subnets with hosts or parts that are delegated separately. */
    finerSubnets: async () => await subnetIds(pool, "select distinct subnet_id from finer_delegation"),
    /** The delegation time of subnets with a delegation of their own. */
    delegatedAt: async (ids: readonly SubnetId[]): Promise<ReadonlyMap<SubnetId, string>> => {
      const { rows } = await pool.query<{ subnetId: SubnetId; at: Date }>(
        `select subnet_id as "subnetId", delegated_at as at from delegation where subnet_id = any($1::int[])`,
        [ids],
      );
      return new Map(rows.map(({ subnetId, at }) => [subnetId, at.toISOString()]));
    },
    holders: async (holderIds: readonly HolderId[]) =>
      await named(pool, "holder_id = any($1::int[])", holderIds),
    /** Holders with exactly this handle or name, in any case. */
    holdersCalled: async (text: string) =>
      await named(
        pool,
        `handle = upper($1) or (name ilike replace(replace(replace($1, '\\', '\\\\'), '%', '\\%'), '_', '\\_'))`,
        text,
        mostHoldersCalled,
      ),
  };
}

/** COPY takes no parameters, so the number is validated here. */
function loadsSql(recrawlDays: number): string {
  if (!(recrawlDays > 0 && Number.isFinite(recrawlDays)))
    throw new RangeError(`not a recrawl interval in days: ${recrawlDays}`);
  return `
    select subnet_id,
      sum(least(${mostPagesPerHost}, greatest(0, url_count - fetched_urls) + fetched_urls / ${recrawlDays}::float8))::float4,
      (count(*) filter (where due_at is not null))::int4
    from frontier_host
    where state = 'resolved' and subnet_id is not null
    group by subnet_id`;
}

async function copied(pool: Pool, select: string, visit: (row: CopiedRow) => void): Promise<void> {
  const client = await pool.connect();
  let isUsable = false;
  try {
    await readCopy(client, select, visit);
    isUsable = true;
  } finally {
    client.release(!isUsable);
  }
}

async function subnetIds(pool: Pool, select: string): Promise<SubnetId[]> {
  const { rows } = await pool.query<{ subnet_id: number }>(select);
  return rows.map((row) => asSubnetId(row.subnet_id));
}

async function named(
  pool: Pool,
  condition: string,
  value: unknown,
  limit: number | null = null,
): Promise<NamedHolder[]> {
  const { rows } = await pool.query<NamedHolder>(
    `select holder_id as "holderId", name, handle
     from holder
     where ${condition}
     order by holder_id
     limit $2`,
    [value, limit],
  );
  return rows;
}

interface ExploredLoad extends Pick<SubnetLoad, "subnetId" | "pagesPerDay"> {
  readonly dueHosts: number;
}

export interface NamedHolder {
  readonly holderId: HolderId;
  readonly name: string;
  readonly handle: string | null;
}

/** Time, and how the explorer yields to other work. */
export interface ExploreClock {
  /** A monotonic clock in ms. */
  readonly steadyMs: () => number;
  /** Resolves after all other ready work has run. */
  readonly yieldTurn: () => Promise<void>;
}
