/** Table subnet: the registry hierarchy in force, and the notification that it changed. */
import type { Pool, PoolClient } from "pg";
import { type CopiedRow, readCopy } from "#db/copy";
import { ChannelListener } from "../../database/channel-listener.ts";
import { inTransaction, sqlStateOf } from "../../database/transaction.ts";
import { readPublishedRanges } from "./published-reads.ts";
import type { Registry } from "./subnet.ts";
import type { SubnetRows } from "./tree-columns.ts";

export type SubnetStore = ReturnType<typeof createSubnetStore>;

export function createSubnetStore(pool: Pool) {
  return {
    /** Null before the first import. */
    currentGeneration: async () => (await registryInForce(pool))?.generation ?? null,
    registryInForce: async () => await registryInForce(pool),
    /** Adds every subnet in force, unordered. Returns their registry, read in the same snapshot. */
    readRows: async (into: SubnetRows) => await readSubnets(pool, into),
    /** Published locations of ranges, from the import in force. */
    readPublished: async () => await readPublishedRanges(pool),
    /** Calls back whenever an import or a rollback has committed (Postgres NOTIFY `nearcrawl_registry`). */
    onChange: async (changed: () => void) => {
      const listener = new ChannelListener(pool, "nearcrawl_registry", changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

/** The latest import, or the stand-in roots if none is in force. */
async function registryInForce(on: Pool | PoolClient): Promise<RegistryInForce | null> {
  const { rows } = await on.query<RegistryInForce>(
    `select generation,
       to_char(coalesce(applied_at, created_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "appliedAt"
     from registry_generation
     where state in ('applied', 'stand-in')
     order by state, generation desc
     limit 1`,
  );
  return rows[0] ?? null;
}

/** Reads one snapshot, whatever is imported meanwhile. The rows are unordered, because the tree sorts faster than the server. */
async function readSubnets(pool: Pool, into: SubnetRows): Promise<RegistryInForce | null> {
  const client = await pool.connect();
  let isUsable = false;
  try {
    await client.query("begin isolation level repeatable read read only");
    const registry = await registryInForce(client);
    await readCopy(client, selectSubnets, (row) => addRow(into, row));
    await client.query("commit");
    isUsable = true;
    return registry;
  } finally {
    client.release(!isUsable);
  }
}

const selectSubnets = `
  select subnet_id, first_address, last_address, holder_id, country, registry, name
  from subnet
  where removed_in is null`;

function addRow(into: SubnetRows, row: CopiedRow): void {
  const facts = {
    id: row.int32(0),
    holderId: row.isNull(3) ? null : row.int32(3),
    country: row.isNull(4) ? null : row.text(4),
    registry: row.text(5) as Registry,
    name: row.text(6),
  };
  if (row.family(1) === 4) {
    into.addIpv4(row.word(1, 0), row.word(2, 0), facts);
    return;
  }
  for (let word = 0; word < 4; word += 1) {
    first[word] = row.word(1, word);
    last[word] = row.word(2, word);
  }
  into.addIpv6(first, last, facts);
}

/** Reused for the words of one IPv6 range between row and columns. */
const first = new Uint32Array(4);

const last = new Uint32Array(4);

/** Identifies a registry. Generations restart in each database, so the time distinguishes them. */
export interface RegistryInForce {
  readonly generation: number;
  /** As written by the database, to the microsecond. */
  readonly appliedAt: string;
}

// The two roots of the hierarchy (paper section 4.1 begins with the complete range of addresses), for a coordinator without a
// registry. With them every address is in a subnet, so crawlers can work. They form a generation in the state `stand-in`,
// which is no import, so there is nothing to roll back and any import replaces them.

/** Maximum wait for a running import, which replaces the roots anyway. Otherwise the call is repeated. */
const importWaitMs = 2000;

const lockNotAvailable = "55P03";

const roots = `(values
    ('0.0.0.0'::inet, '255.255.255.255'::inet),
    ('::'::inet, 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'::inet)
  ) as root (first_address, last_address)`;

/** Inserts the roots if no registry is in force. Returns whether it did. */
export async function ensureRootSubnets(pool: Pool): Promise<boolean> {
  if (!(await areRootsMissing(pool))) return false;
  try {
    return await addRoots(pool);
  } catch (error) {
    if (sqlStateOf(error) === lockNotAvailable) return false;
    throw error;
  }
}

async function areRootsMissing(on: Pool | PoolClient): Promise<boolean> {
  const { rowCount } = await on.query(
    `select
     where not exists (select from registry_generation where state = 'applied')
       and exists (
         select from ${roots}
         where not exists (
           select from subnet c
           where c.first_address = root.first_address and c.last_address = root.last_address
             and c.removed_in is null
         )
       )`,
  );
  return rowCount !== 0;
}

async function addRoots(pool: Pool): Promise<boolean> {
  return await inTransaction(pool, async (client) => {
    await client.query(`set local lock_timeout = ${importWaitMs}`);
    await client.query("lock table registry_generation in share row exclusive mode");
    if (!(await areRootsMissing(client))) return false;
    await client.query(
      `with born as (
         insert into registry_generation (state, applied_at, counts)
         values ('stand-in', now(), '{"added": 2}')
         returning generation
       )
       insert into subnet (first_address, last_address, registry, name, added_in)
       select first_address, last_address, 'iana', 'root', generation
       from born
       cross join ${roots}
       on conflict (first_address, last_address) do update
         set removed_in = null`,
    );
    return true;
  });
}
