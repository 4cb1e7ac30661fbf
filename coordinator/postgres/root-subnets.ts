/**
 * The two roots of the hierarchy (paper section 4.1 begins with the complete range of addresses), for a
 * coordinator that has no registry: every address lies in a subnet, so a crawler can work.
 */
import type { Pool, PoolClient } from "pg";
import { inTransaction, sqlStateOf } from "./transaction.ts";

/** An import under way is not waited for longer: what it brings takes the roots' place, or they are asked for again. */
const importWaitMs = 2000;
const lockNotAvailable = "55P03";

/** Adds a generation that holds the roots alone, where no generation is in force; true when it did. */
export async function ensureRootSubnets(pool: Pool): Promise<boolean> {
  if (await isAnyInForce(pool)) return false;
  try {
    return await addRoots(pool);
  } catch (error) {
    if (sqlStateOf(error) === lockNotAvailable) return false;
    throw error;
  }
}

async function isAnyInForce(on: Pool | PoolClient): Promise<boolean> {
  const { rowCount } = await on.query("select from registry_generation where state = 'applied' limit 1");
  return rowCount !== 0;
}

async function addRoots(pool: Pool): Promise<boolean> {
  return await inTransaction(pool, async (client) => {
    await client.query(`set local lock_timeout = ${importWaitMs}`);
    await client.query("lock table registry_generation in share row exclusive mode");
    if (await isAnyInForce(client)) return false;
    await client.query(
      `with born as (
         insert into registry_generation (state, applied_at, counts)
         values ('applied', now(), '{"added": 2}')
         returning generation
       )
       insert into subnet (first_address, last_address, registry, name, added_in)
       select first_address, last_address, 'iana', 'root', generation
       from born
       cross join (values
         ('0.0.0.0'::inet, '255.255.255.255'::inet),
         ('::'::inet, 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'::inet)
       ) as roots (first_address, last_address)
       on conflict (first_address, last_address) do update
         set removed_in = null`,
    );
    return true;
  });
}
