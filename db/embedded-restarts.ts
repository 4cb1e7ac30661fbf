/**
 * Counts how often an embedded server was restarted after it died, over all processes: a line each in
 * <home>/postgres-restarts with the dead server's process id and the time. Whoever notices writes the line before the
 * start; two that notice at once write the same id, which counts once.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readPidFile } from "./embedded-postgres.ts";

/** A server that keeps dying has a cause that restarting does not fix. */
export const mostRestarts = 3;
export const restartMinutes = 10;

const mostLines = 100;

const fileOf = (home: string) => join(home, "postgres-restarts");

export function restartsOf(home: string): readonly number[] {
  const sinceMs = Date.now() - restartMinutes * 60_000;
  const recent = linesOf(home).filter(({ atMs }) => atMs >= sinceMs && atMs <= Date.now());
  return [...new Set(recent.map(({ pid }) => pid))];
}

/** Returns false when it died too often and must stay down. */
export function noteRestart(home: string): boolean {
  const pid = readPidFile(home)?.pid;
  if (pid === undefined) return true;
  const others = restartsOf(home).filter((one) => one !== pid);
  if (others.length >= mostRestarts) return false;
  try {
    const lines = linesOf(home);
    if (lines.length >= mostLines)
      writeFileSync(fileOf(home), lines.slice(-mostRestarts).map(lineOf).join(""));
    if (!restartsOf(home).includes(pid)) appendFileSync(fileOf(home), lineOf({ pid, atMs: Date.now() }));
  } catch {
    // A full disk must not prevent the restart.
  }
  return true;
}

interface Line {
  readonly pid: number;
  readonly atMs: number;
}

const lineOf = ({ pid, atMs }: Line) => `${pid} ${new Date(atMs).toISOString()}\n`;

function linesOf(home: string): readonly Line[] {
  let text = "";
  try {
    text = readFileSync(fileOf(home), "utf8");
  } catch {
    return [];
  }
  return text.split("\n").flatMap((line) => {
    const [, pid, at] = /^(\d+) (\S+)$/.exec(line) ?? [];
    const atMs = Date.parse(at ?? "");
    return Number.isNaN(atMs) ? [] : [{ pid: Number(pid), atMs }];
  });
}
