/** What the explorer reads besides memory: when subnets were delegated, what they load, who holds them. */
import type { Pool } from "pg";
import { asHolderId, asSubnetId, type HolderId, type SubnetId } from "#core/ids";
import { type CopiedRow, readCopy } from "#db/copy";

const mostHoldersCalled = 50;

/** One page a second and host, the usual pace (subnet-loads). */
const mostPagesPerHost = 86_400;

export function createExploreReads(pool: Pool): ExploreReads {
  return {
    eachMark: async (visit) => {
      await copied(pool, marks, (row) =>
        visit({ subnetId: asSubnetId(row.int32(0)), since: row.int32(1), anycast: row.boolean(2) }),
      );
    },
    eachLoad: async (recrawlDays, visit) => {
      await copied(pool, loadsSql(recrawlDays), (row) =>
        visit({ subnetId: asSubnetId(row.int32(0)), pagesPerDay: row.float32(1), dueHosts: row.int32(2) }),
      );
    },
    finerSubnets: async () => await finerSubnets(pool),
    holders: async (holderIds) => await named(pool, "holder_id = any($1::int[])", holderIds),
    holdersCalled: async (text) =>
      await named(
        pool,
        `handle = upper($1) or (name ilike replace(replace(replace($1, '\\', '\\\\'), '%', '\\%'), '_', '\\_'))`,
        text,
        mostHoldersCalled,
      ),
  };
}

const marks = `
  select subnet_id, extract(epoch from delegated_at)::int4 as since, anycast
  from delegation`;

/** COPY takes no parameters: the number is checked here. */
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

async function finerSubnets(pool: Pool): Promise<SubnetId[]> {
  const { rows } = await pool.query<{ subnet_id: number }>("select distinct subnet_id from finer_delegation");
  return rows.map((row) => asSubnetId(row.subnet_id));
}

async function named(
  pool: Pool,
  condition: string,
  value: unknown,
  limit: number | null = null,
): Promise<NamedHolder[]> {
  const { rows } = await pool.query<{ holder_id: number; name: string; handle: string | null }>(
    `select holder_id, name, handle
     from holder
     where ${condition}
     order by holder_id
     limit $2`,
    [value, limit],
  );
  return rows.map(({ holder_id, name, handle }) => ({ holderId: asHolderId(holder_id), name, handle }));
}

// What the explorer asks of the database: what the coordinator's memory does not hold.

/** When a subnet was delegated, and whether it was found to answer from many places. */
interface DelegationMark {
  readonly subnetId: SubnetId;
  /** Seconds since 1970. */
  readonly since: number;
  readonly anycast: boolean;
}

export interface ExploredLoad {
  readonly subnetId: SubnetId;
  readonly pagesPerDay: number;
  readonly dueHosts: number;
}

export interface NamedHolder {
  readonly holderId: HolderId;
  readonly name: string;
  readonly handle: string | null;
}

export interface ExploreReads {
  /** Hands over every delegation's mark, row by row. */
  eachMark(visit: (mark: DelegationMark) => void): Promise<void>;
  /** Subnets with hosts: what each is to be fetched a day, where every page is fetched once in so many days. */
  eachLoad(recrawlDays: number, visit: (load: ExploredLoad) => void): Promise<void>;
  /** Subnets with hosts or parts that are delegated apart. */
  finerSubnets(): Promise<readonly SubnetId[]>;
  holders(holderIds: readonly HolderId[]): Promise<readonly NamedHolder[]>;
  /** Holders with exactly this handle, or whose name is this, in any case; few. */
  holdersCalled(text: string): Promise<readonly NamedHolder[]>;
}

/** The clock, and how the explorer lets others have their turn. */
export interface ExploreClock {
  readonly now: () => Date;
  /** A steady clock in ms. */
  readonly steadyMs: () => number;
  /** Resolves when everybody else who was ready has had a turn. */
  readonly yieldTurn: () => Promise<void>;
}
