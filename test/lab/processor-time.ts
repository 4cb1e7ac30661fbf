/**
 * Processor time of this process and of the whole Postgres server beside it: its backends, those that have ended, and
 * what works behind them (checkpoints, the log, vacuum). Linux: from /proc.
 */
import { readdirSync, readFileSync } from "node:fs";
import type { Pool } from "pg";

interface ProcessorTime {
  readonly ownMs: number;
  readonly serverMs: number;
}

/** The server's first process, of which all others are children. */
export async function serverPid(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  return statOf(rows[0]!.pid).parent;
}

export function processorTime(server: number): ProcessorTime {
  const { user, system } = process.cpuUsage();
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => tryStat(Number(name)) ?? [])
    .filter(({ parent }) => parent === server);
  const { ticks, endedTicks } = statOf(server);
  const serverTicks = children.reduce((sum, child) => sum + child.ticks, ticks + endedTicks);
  return { ownMs: (user + system) / 1000, serverMs: 10 * serverTicks };
}

/** User and system time of one process; 0 when it is gone. */
export function cpuMsOf(pid: number): number {
  return 10 * (tryStat(pid)?.ticks ?? 0);
}

interface Stat {
  readonly parent: number;
  /** Of 10 ms, user and system; `endedTicks` of children that have ended. */
  readonly ticks: number;
  readonly endedTicks: number;
}

/** proc(5): fields 4 and 14 to 17 of /proc/PID/stat. */
function statOf(pid: number): Stat {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")
    .map(Number);
  return { parent: fields[1]!, ticks: fields[11]! + fields[12]!, endedTicks: fields[13]! + fields[14]! };
}

/** Null: the process has ended meanwhile. */
function tryStat(pid: number): Stat | null {
  try {
    return statOf(pid);
  } catch {
    return null;
  }
}
