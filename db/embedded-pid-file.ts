/**
 * postmaster.pid: which process serves the data folder, and where its socket is. A clean stop removes it, a
 * crash leaves it behind.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseError } from "#core/errors";
import { dataFolderOf } from "./embedded-cluster.ts";
import { isAlive } from "./embedded-program.ts";
import { wordsOf } from "./server-database.ts";

/** Null without the file. The socket's folder is missing while the server is about to start. */
export function readPidFile(home: string): { pid: number; socketFolder: string | undefined } | null {
  try {
    // pid, data folder, start time, port, socket folder, …
    const lines = readFileSync(pidFileOf(home), "utf8").split("\n");
    const pid = Number(lines[0]);
    return Number.isInteger(pid) && pid > 0 ? { pid, socketFolder: lines[4]?.trim() } : null;
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new DatabaseError(`${pidFileOf(home)} cannot be read: ${wordsOf(error)}`, { cause: error });
  }
}

/** True when the process that the pid file names lives and is this folder's server. */
export function serverIsAlive(home: string): boolean {
  const pid = readPidFile(home)?.pid;
  return pid !== undefined && isAlive(pid) && serves(pid, dataFolderOf(home));
}

/** True after a crash: the server is gone, but did not take leave. */
export function serverCrashed(home: string): boolean {
  return existsSync(pidFileOf(home)) && !serverIsAlive(home);
}

/**
 * Postgres takes a live process of its own account for a server that still runs, and refuses to start. A
 * process id is given to another program after a while, soon in containers. Called when the socket is silent.
 */
export function removeForeignPidFile(home: string): void {
  const pid = readPidFile(home)?.pid;
  if (pid !== undefined && isAlive(pid) && !serverIsAlive(home)) rmSync(pidFileOf(home), { force: true });
}

/** A server's command line names its data folder. Where it cannot be read (no /proc), a live process passes for the server. */
function serves(pid: number, dataFolder: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(dataFolder);
  } catch {
    return isAlive(pid);
  }
}

function pidFileOf(home: string): string {
  return join(dataFolderOf(home), "postmaster.pid");
}
