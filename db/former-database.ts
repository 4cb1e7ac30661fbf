/**
 * Determines whether a home had an embedded database before, by files beside the data folder. When that folder is gone
 * (an `rm -rf`, an unmounted disk), an empty database in its place would serve without opt-outs and crawler identities,
 * report that it is ready, and be what the next backups contain.
 */
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { listBackups } from "./backup-folder.ts";

// <home>/database.json names the home's cluster.

const noteSchema = z.object({ systemIdentifier: z.string().regex(/^\d{1,20}$/) });

const noteFileOf = (home: string) => join(home, "database.json");

export function knownCluster(home: string): string | null {
  try {
    return noteSchema.parse(JSON.parse(readFileSync(noteFileOf(home), "utf8"))).systemIdentifier;
  } catch {
    return null;
  }
}

export function noteCluster(home: string, systemIdentifier: string | null): void {
  if (systemIdentifier === null || knownCluster(home) === systemIdentifier) return;
  const unfinished = `${noteFileOf(home)}.new-${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify({ systemIdentifier })}\n`, { mode: 0o644 });
  renameSync(unfinished, noteFileOf(home));
}

/** Returns why no empty database is created in that home, and the command to type; null when it never had one. */
export function lostWords(home: string): string | null {
  const witnesses = witnessesOf(home);
  if (witnesses.length === 0) return null;
  return (
    `the data folder is gone (${join(home, "postgres")}; by ${witnesses.join(", ")} there was a ` +
    `database). To restore it: ${restoreCommandOf(home)} – to begin with an empty one: nearcrawl ` +
    `database start-over --home ${home}`
  );
}

function witnessesOf(home: string): string[] {
  const names = namesIn(home);
  const has = (name: string) => names.includes(name);
  return [
    ...["database.json", "backups.json", "current-run.json"].filter(has),
    ...(has("journal") && namesIn(join(home, "journal")).length > 0 ? ["journal"] : []),
    ...(has("backups") && namesIn(join(home, "backups")).length > 0 ? ["backups"] : []),
    ...names.filter((name) => name.startsWith("postgres.before-")).slice(0, 1),
  ];
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Returns the command to type, with the first backup of `nearcrawl database backups`. */
export function restoreCommandOf(home: string): string {
  const [first] = listBackups(home);
  return first === undefined
    ? `nearcrawl database restore BACKUP --home ${home} (no complete backup is known here)`
    : `nearcrawl database restore ${first.folder} --home ${home}`;
}
