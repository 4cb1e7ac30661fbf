/**
 * The two roots of the hierarchy (paper section 4.1 begins with the complete range of addresses), for a coordinator that
 * has no registry: every address lies in a subnet, so a crawler can work. They are a generation in the state `stand-in`,
 * which is no import: there is nothing to roll back, and an import or a roll forward takes their place.
 */
import type { Pool, PoolClient } from "pg";
import { inTransaction, sqlStateOf } from "../database/transaction.ts";

/** An import under way is not waited for longer: what it brings takes the roots' place, or they are asked for again. */
const importWaitMs = 2000;
const lockNotAvailable = "55P03";

const roots = `(values
    ('0.0.0.0'::inet, '255.255.255.255'::inet),
    ('::'::inet, 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'::inet)
  ) as root (first_address, last_address)`;

/** Puts the roots in place where no registry is in force; true when they were not there. */
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
