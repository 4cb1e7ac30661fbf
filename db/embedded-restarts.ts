/**
 * How often an embedded server was started again after it had died, over all processes that use it: a line each in
 * <home>/postgres-restarts, with the dead server's process id and the time. Who sees it die writes the line before the start;
 * where two see it at once, both write the same id, which counts once.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readPidFile } from "./embedded-postgres.ts";

/** A server that dies again and again has a reason that no start fixes. */
export const mostRestarts = 3;
export const restartMinutes = 10;

/** Lines of the file that are kept. */
const mostLines = 100;

const fileOf = (home: string) => join(home, "postgres-restarts");

/** Process ids of the servers that died in the last minutes and were started again. */
export function restartsOf(home: string): readonly number[] {
  const sinceMs = Date.now() - restartMinutes * 60_000;
  const recent = linesOf(home).filter(({ atMs }) => atMs >= sinceMs && atMs <= Date.now());
  return [...new Set(recent.map(({ pid }) => pid))];
}

/** False where it has died too often: it is to stay as it is. */
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
    // A full disk is no reason to leave it dead.
  }
  return true;
}

interface Line {
  readonly pid: number;
  readonly atMs: number;
}

const lineOf = ({ pid, atMs }: Line) => `${pid} ${new Date(atMs).toISOString()}\n`;

/** Without what is no such line. */
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
