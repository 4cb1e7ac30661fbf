/** CPU that processes have used, which other work on the machine does not change as it does the time. Linux: from /proc. */
import { readdirSync, readFileSync } from "node:fs";
import type { Pool } from "pg";

/** User and system time in ticks of 10 ms (proc(5), fields 14 and 15); null where there is no /proc. */
export function cpuMs(pid: number): number | null {
  const fields = statOf(pid);
  return fields === null ? null : 10 * (Number(fields[11]) + Number(fields[12]));
}

/** Of Postgres: all its processes, also those that have ended since (connections that a pool closed, parallel workers). */
export async function postgresCpuMs(pool: Pool): Promise<number | null> {
  const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  const parent = Number(statOf(rows[0]!.pid)?.[1]);
  const ended = statOf(parent);
  if (ended === null) return null;
  const running = readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && Number(statOf(pid)?.[1]) === parent)
    .reduce((sum, pid) => sum + (cpuMs(pid) ?? 0), 0);
  return running + 10 * (Number(ended[13]) + Number(ended[14]));
}

/** Fields of proc(5) from the third on. */
function statOf(pid: number): string[] | null {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
  } catch {
    return null;
  }
}
