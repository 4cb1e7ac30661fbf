/** Whether the database is what this software needs: it answers, has every migration, and says which registry is in force. */
import type { Pool } from "pg";
import { pendingMigrations } from "#db/migrate";
import type { ReadinessReads } from "../../flows/operation-reads.ts";
import { createSubnetStore } from "../subnet-store.ts";

export function readinessReads(pool: Pool): ReadinessReads {
  const subnets = createSubnetStore(pool);
  return {
    ping: async () => {
      await pool.query("select 1");
    },
    pendingMigrations: async () => await pendingMigrations(pool),
    currentGeneration: async () => await subnets.currentGeneration(),
  };
}
