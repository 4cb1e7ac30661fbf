/**
 * Which process holds something, in a file that outlives it. A process id alone may be another process's by now (in
 * a container it nearly always is): where the system tells, the start of the process is noted with it.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";

const processMark = z.object({ pid: z.int().min(1), startTicks: z.string().nullable() });
export type ProcessMark = z.infer<typeof processMark>;

export function writeMark(path: string, pid: number): void {
  const mark: ProcessMark = { pid, startTicks: startTicks(pid) };
  writeFileSync(`${path}.draft`, JSON.stringify(mark), { mode: 0o600 });
  renameSync(`${path}.draft`, path);
}

/**
 * False: another process that runs has it. Of several that find the mark of one that is gone, one gets it: the mark
 * is made whole or not at all, and an old one is looked at again after it was put out of the way.
 */
export function takeMark(path: string, pid: number): boolean {
  const [draft, old] = [`${path}.${process.pid}.draft`, `${path}.${process.pid}.old`];
  writeMark(draft, pid);
  try {
    if (linked(draft, path)) return true;
    if (!isAnothers(path, pid) && moved(path, old)) {
      if (!isAnothers(old, pid)) return linked(draft, path);
      linked(old, path);
    }
    return false;
  } finally {
    for (const file of [draft, old]) removeMark(file);
  }
}

export function removeMark(path: string): void {
  rmSync(path, { force: true });
}

/** The process that holds it, while it runs; null: nobody does. */
export function holderOf(path: string): number | null {
  const mark = readMark(path);
  if (mark === null || !isThere(mark.pid)) return null;
  const ticks = startTicks(mark.pid);
  return mark.startTicks === null || ticks === null || ticks === mark.startTicks ? mark.pid : null;
}

function isAnothers(path: string, pid: number): boolean {
  const holder = holderOf(path);
  return holder !== null && holder !== pid;
}

/** False: there is one already. */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** False: somebody was faster. */
function moved(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function readMark(path: string): ProcessMark | null {
  try {
    return processMark.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return null;
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Linux: field 22 of /proc/PID/stat, clock ticks since the system's start; null elsewhere, or for one that has ended. */
function startTicks(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in brackets, field 2, may hold anything.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}
