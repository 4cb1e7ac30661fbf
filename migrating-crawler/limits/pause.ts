/**
 * What the host asks of its crawler by hand, until `resume`, also over restarts: a pause (it contacts nobody but its coordinator),
 * or a drain (it ends what it has and leaves, status/drain.ts). Each is a file in the crawler's folder, so that a command
 * can ask for it whether the crawler runs or not.
 */
import { existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { jsonIn } from "../core/json.ts";

const files = { pause: "paused.json", drain: "draining.json" } as const;
type Asked = keyof typeof files;

const mostBytes = 4096;
const mostWords = 300;
/** Since when, and who says so and why, in words. */
const kept = z.object({ since: z.iso.datetime(), reason: z.string().max(mostWords) });

export type SinceAndWhy = Readonly<z.infer<typeof kept>>;

/** Throws the system's error when the folder cannot be written. */
export function keepAsked(what: Asked, home: string, reason: string): void {
  const path = join(home, files[what]);
  const asked: SinceAndWhy = { since: new Date().toISOString(), reason: reason.slice(0, mostWords) };
  if (!existsSync(home)) mkdirSync(home, { recursive: true });
  // A link in its place is not followed: root may be the one who writes here.
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, JSON.stringify(asked), { mode: 0o600, flag: "wx" });
  renameSync(`${path}.new`, path);
}

/** Throws the system's error when the folder cannot be written. */
export function forgetAsked(what: Asked, home: string): void {
  rmSync(join(home, files[what]), { force: true });
}

/**
 * Null: it is not asked for. A file that says nothing sensible pauses all the same, but drains nothing: leaving cannot be
 * taken back.
 */
export function readAsked(what: Asked, home: string): SinceAndWhy | null {
  const path = join(home, files[what]);
  const asked = jsonIn(path, mostBytes, kept);
  if (asked !== null || what === "drain" || !existsSync(path)) return asked;
  const since = statSync(path, { throwIfNoEntry: false })?.mtime;
  return since === undefined ? null : { since: since.toISOString(), reason: `by ${path}` };
}
