/** Table subnet: the registry hierarchy in force, and the notice that it changed. */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { asHolderId, asSubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { rangeBetween } from "#core/ip/range";
import type { Registry, Subnet } from "#core/subnet/subnet";
import type { SubnetStore } from "../flows/ports.ts";

const rowsPerFetch = 5_000;
const listenAgainMs = 1_000;

export function createSubnetStore(pool: Pool): SubnetStore {
  return {
    async currentGeneration() {
      const { rows } = await pool.query<{ generation: number | null }>(
        "select max(generation) as generation from registry_generation where state = 'applied'",
      );
      return rows[0]?.generation ?? null;
    },

    readAll: () => readSubnets(pool),

    onChange: async (changed) => {
      const listener = new RegistryListener(pool, changed);
      await listener.listen();
      return { stop: async () => await listener.stop() };
    },
  };
}

interface SubnetRow {
  subnet_id: number;
  first: string;
  last: string;
  parent_id: number | null;
  holder_id: number | null;
  country: string | null;
  registry: Registry;
  name: string;
}

/** By a cursor, so that millions of subnets never stand in memory twice; one snapshot, whatever is imported meanwhile. */
async function* readSubnets(pool: Pool): AsyncGenerator<Subnet> {
  const client = await pool.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    await client.query(
      `declare subnets no scroll cursor for
       select subnet_id, host(first_address) as first, host(last_address) as last,
         parent_id, holder_id, country, registry, name
       from subnet
       where removed_in is null
       order by first_address, last_address desc`,
    );
    while (true) {
      const { rows } = await client.query<SubnetRow>(`fetch ${rowsPerFetch} from subnets`);
      for (const row of rows) yield subnetOf(row);
      if (rows.length < rowsPerFetch) return;
    }
  } finally {
    const ended = await client.query("rollback").catch(() => null);
    client.release(ended === null);
  }
}

function subnetOf(row: SubnetRow): Subnet {
  const first = parseAddress(row.first);
  const last = parseAddress(row.last);
  const range = first && last ? rangeBetween(first, last) : null;
  if (!range) throw new DatabaseError(`subnet ${row.subnet_id}: ${row.first} - ${row.last} is no range`);
  return {
    id: asSubnetId(row.subnet_id),
    range,
    parentId: row.parent_id === null ? null : asSubnetId(row.parent_id),
    holderId: row.holder_id === null ? null : asHolderId(row.holder_id),
    country: row.country,
    registry: row.registry,
    name: row.name,
  };
}

/**
 * One connection that listens. When it breaks, a new one is taken until it listens again, and then the
 * registry counts as changed: a notice may have been missed.
 */
class RegistryListener {
  readonly #pool: Pool;
  readonly #changed: () => void;
  #client: PoolClient | null = null;
  #stopped = false;

  constructor(pool: Pool, changed: () => void) {
    this.#pool = pool;
    this.#changed = changed;
  }

  async listen(): Promise<void> {
    const client = await this.#pool.connect();
    client.on("notification", this.#notified);
    client.on("error", (error) => {
      if (this.#client !== client) return;
      this.#client = null;
      client.release(error);
      void this.#listenAgain();
    });
    this.#client = client;
    await client.query("listen nearcrawl_registry");
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#client?.release(true);
    this.#client = null;
  }

  readonly #notified = (): void => {
    if (!this.#stopped) this.#changed();
  };

  async #listenAgain(): Promise<void> {
    while (!this.#stopped && this.#client === null) {
      await delay(listenAgainMs, undefined, { ref: false });
      if (this.#stopped) return;
      await this.listen().then(this.#notified, () => {
        this.#client?.release(true);
        this.#client = null;
      });
    }
  }
}
