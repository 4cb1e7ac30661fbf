/**
 * Whether the database is what this software needs: it answers, has every migration, can be written, and says which
 * registry is in force.
 */
import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { pendingMigrations } from "#db/migrate";
import { isConnectionLost } from "#db/server-database";
import { KeptAnswer } from "../database/cached-read.ts";
import { createSubnetStore } from "../subnets/subnet-store.ts";
import type { ReadinessReads } from "./overview-types.ts";

/** Balancers and monitors ask every few seconds, several of them. */
const writeKeptMs = 10_000;

/** `nowMs` is a clock that never goes back. */
export function readinessReads(pool: Pool, nowMs: () => number): ReadinessReads {
  const subnets = createSubnetStore(pool);
  const writing = new KeptAnswer(() => writeFault(pool), nowMs, writeKeptMs);
  return {
    ping: async () => {
      await pool.query("select 1");
    },
    pendingMigrations: async () => await pendingMigrations(pool),
    currentGeneration: async () => await subnets.currentGeneration(),
    writeFault: async () => await writing.get(),
  };
}

/**
 * A table of nine blocks is written and taken back, and the transaction around it committed, in one statement. Rows in
 * blocks that exist, and the log in its files that are kept at hand, can still be written when the disk is full; new
 * blocks cannot. Nobody else sees the table, and nothing is left of it.
 */
async function writeFault(pool: Pool): Promise<string | null> {
  const name = `ready_${randomBytes(6).toString("hex")}`;
  try {
    await pool.query(
      `do $$
       begin
         create table ${name} (number bigint);
         insert into ${name} select generate_series(1, 2000);
         raise sqlstate '${takenBack}';
       exception
         when sqlstate '${takenBack}' then null;
       end
       $$`,
    );
    return null;
  } catch (error) {
    const { code } = error as { code?: unknown };
    // Who writes need not be allowed to make tables: then nothing can be told.
    if (code === insufficientPrivilege) return null;
    if (code === diskFull) return "the database cannot be written: its disk is full";
    if (code === readOnly) return "the database cannot be written: it is read-only";
    if (typeof code === "string" && isSqlState(code) && !isConnectionLost(error)) {
      return `the database cannot be written (SQLSTATE ${code}): its log says why`;
    }
    throw error;
  }
}

/** Not one of the system's, such as EPIPE. */
const isSqlState = (code: string) => /^(?=.*\d)[0-9A-Z]{5}$/.test(code);

/** Of a class that Postgres leaves to others. */
const takenBack = "NC001";
const insufficientPrivilege = "42501";
const diskFull = "53100";
const readOnly = "25006";
