/**
 * Stores what the host asks of its crawler until `resume`, across restarts: a pause (it contacts only its coordinator)
 * or a drain (it finishes its work and leaves, status/drain.ts). Each is a file in the crawler's folder, so commands
 * work whether or not the crawler runs.
 */
import { existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { jsonIn } from "../core/json.ts";

const files = { pause: "paused.json", drain: "draining.json" } as const;
type Asked = keyof typeof files;

const mostBytes = 4096;
const mostWords = 300;
const kept = z.object({ since: z.iso.datetime(), reason: z.string().max(mostWords) });

export type SinceAndWhy = Readonly<z.infer<typeof kept>>;

/** Throws the system's error when the folder is not writable. */
export function keepAsked(what: Asked, home: string, reason: string): void {
  const path = join(home, files[what]);
  const asked: SinceAndWhy = { since: new Date().toISOString(), reason: reason.slice(0, mostWords) };
  if (!existsSync(home)) mkdirSync(home, { recursive: true });
  // Does not follow a link there, because root may be the writer.
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, JSON.stringify(asked), { mode: 0o600, flag: "wx" });
  renameSync(`${path}.new`, path);
}

export function forgetAsked(what: Asked, home: string): void {
  rmSync(join(home, files[what]), { force: true });
}

/**
 * Returns null when it is not asked for. An invalid file still pauses but does not drain, because leaving cannot be
 * undone.
 */
export function readAsked(what: Asked, home: string): SinceAndWhy | null {
  const path = join(home, files[what]);
  const asked = jsonIn(path, mostBytes, kept);
  if (asked !== null || what === "drain" || !existsSync(path)) return asked;
  const since = statSync(path, { throwIfNoEntry: false })?.mtime;
  return since === undefined ? null : { since: since.toISOString(), reason: `by ${path}` };
}
