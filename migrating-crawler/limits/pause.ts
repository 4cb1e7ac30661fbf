/**
 * A crawler that is paused contacts nobody but its coordinator until it is resumed, also over restarts. The pause is
 * a file in the crawler's folder, so that a command can pause a crawler whether it runs or not; one that runs looks
 * at it every few seconds.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

export interface Paused {
  readonly since: Date;
  /** Who says so and why, in words. */
  readonly reason: string;
}

const fileName = "paused.json";
const mostBytes = 4096;
const mostWords = 300;
const kept = z.object({ since: z.coerce.date(), reason: z.string().max(mostWords) });

/** Throws the system's error when the folder cannot be written. */
export function pauseCrawler(home: string, reason: string): void {
  const path = join(home, fileName);
  const paused = { since: new Date().toISOString(), reason: reason.slice(0, mostWords) };
  if (!existsSync(home)) mkdirSync(home, { recursive: true });
  // A link in its place is not followed: root may be the one who writes here.
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, JSON.stringify(paused), { mode: 0o600, flag: "wx" });
  renameSync(`${path}.new`, path);
}

/** Throws the system's error when the folder cannot be written. */
export function resumeCrawler(home: string): void {
  rmSync(join(home, fileName), { force: true });
}

/** Null when it is not paused. A file that says nothing sensible pauses all the same. */
export function readPause(home: string): Paused | null {
  const path = join(home, fileName);
  try {
    const { size, mtime } = statSync(path);
    const read = size > mostBytes ? null : kept.safeParse(jsonIn(path));
    return read?.success ? read.data : { since: mtime, reason: `by ${path}` };
  } catch {
    return null;
  }
}

function jsonIn(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}
