/** One export to a target at a time, since each would overwrite the other's cursor. */
import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";

/** `place` names the target. Returns null, without any work, while another export to it is running. */
export async function alone<T>(
  pool: Pool,
  { schema, place }: { readonly schema: string; readonly place: string },
  work: () => Promise<T>,
): Promise<T | null> {
  const name = `search export ${createHash("sha256").update(place).digest("hex")}`;
  const client = await pool.connect();
  try {
    return (await tryAdvisoryLock(client, name, schema)) ? await work() : null;
  } finally {
    await releaseAdvisoryLock(client, name, schema);
    client.release();
  }
}
