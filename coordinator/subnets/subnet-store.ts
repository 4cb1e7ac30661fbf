/** Table subnet: the registry hierarchy in force, and the notice that it changed. */
import type { Pool, PoolClient } from "pg";
import { type CopiedRow, readCopy } from "#db/read-copy";
import { ChannelListener } from "../database/channel-listener.ts";
import type { RegistryInForce, SubnetStore } from "./registry-ports.ts";
import type { Registry } from "./subnet.ts";
import type { SubnetRows } from "./subnet-rows.ts";

export function createSubnetStore(pool: Pool): SubnetStore {
  return {
    currentGeneration: async () => (await registryInForce(pool))?.generation ?? null,

    registryInForce: async () => await registryInForce(pool),

    readRows: async (into) => await readSubnets(pool, into),

    onChange: async (changed) => {
      const listener = new ChannelListener(pool, "nearcrawl_registry", changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

/** The latest import; where none is in force, the roots that stand in for it (root-subnets.ts). */
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

/** One snapshot, whatever is imported meanwhile. In no order: the tree sorts faster than the server. */
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

/** The words of one IPv6 range on their way from the row to the columns. */
const first = new Uint32Array(4);
const last = new Uint32Array(4);
