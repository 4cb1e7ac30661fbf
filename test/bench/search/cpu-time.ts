/** CPU that processes have used, which other work on the machine does not change as it does the time. Linux: from /proc. */
import { readFileSync } from "node:fs";
import type { Pool } from "pg";

/** User and system time in ticks of 10 ms (proc(5), fields 14 and 15); null where there is no /proc. */
export function cpuMs(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ");
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return null;
  }
}

/** Of all connections of this database. */
export async function backendsCpuMs(pool: Pool): Promise<number | null> {
  const { rows } = await pool.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'",
  );
  const each = rows.map(({ pid }) => cpuMs(pid));
  return each.includes(null) ? null : each.reduce<number>((sum, ms) => sum + (ms ?? 0), 0);
}
