/**
 * What a crawler keeps on its disk and takes along to another host, as one file that is sent in parts:
 *
 *   length of the list u32, big-endian | the list, JSON: [{name, bytes}] | the files, one after the other
 *
 * Along go the spool (its id always, its results when some wait), the hosts' paces and the rules of robots.txt. What
 * belongs to the machine and its host stays: settings, counts of the day and the month, releases, log, a pause.
 */
import { createHash } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { UsageError } from "#core/errors";
import { crawlerName } from "#protocol/invitation";
import { maxMoveBytes, movePartBytes } from "#protocol/move";
import { readPrivateJson, writePrivateJson } from "../core/private-file.ts";
import { isSegment } from "../spool/spool-folder.ts";

export interface PackedFile {
  readonly name: string;
  readonly bytes: number;
}

export interface Pack {
  readonly bytes: number;
  /** SHA-256 in hex. */
  readonly digest: string;
}

export const packFile = (home: string): string => join(movingFolder(home), "pack");

/** Files besides the spool, with the names that their owners use. */
export const keptFiles = ["host-paces.json", "robots-rules.json"] as const;

/** Nobody may write these files meanwhile. Throws a UsageError when they are too large together. */
export function writePack(home: string, { withResults }: { readonly withResults: boolean }): Pack {
  const files = filesOf(home, withResults);
  const list = Buffer.from(JSON.stringify(files));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 4 + list.length);
  if (bytes > maxMoveBytes) {
    const [waiting, most] = [bytes, maxMoveBytes].map((size) => Math.ceil(size / 1024 / 1024));
    throw new UsageError(
      `${waiting} MiB wait for the coordinator, and a move takes ${most} MiB at most: let the crawler ship its results first`,
    );
  }
  const length = Buffer.alloc(4);
  length.writeUInt32BE(list.length);
  rmSync(movingFolder(home), { recursive: true, force: true });
  mkdirSync(movingFolder(home), { mode: 0o700 });
  const path = packFile(home);
  writeFileSync(path, Buffer.concat([length, list]), { mode: 0o600 });
  const hash = createHash("sha256").update(length).update(list);
  for (const { name } of files) {
    const content = readFileSync(join(home, name));
    hash.update(content);
    appendFileSync(path, content);
  }
  if (statSync(path).size !== bytes)
    throw new UsageError("the crawler's files changed while they were packed");
  return { bytes, digest: hash.digest("hex") };
}

/** Returns base64; empty beyond the end. */
export function readPart(home: string, index: number): string {
  const part = Buffer.alloc(movePartBytes);
  const file = openSync(packFile(home), "r");
  try {
    const length = readSync(file, part, 0, movePartBytes, index * movePartBytes);
    return part.toString("base64", 0, length);
  } finally {
    closeSync(file);
  }
}

/** A spool segment is read whole: it has 8 MiB plus one result. */
function filesOf(home: string, withResults: boolean): PackedFile[] {
  const results = withResults ? readdirSync(join(home, "spool")).filter(isSegment).sort() : [];
  return ["spool/id", ...results.map((name) => `spool/${name}`), ...keptFiles]
    .filter((name) => existsSync(join(home, name)))
    .map((name) => ({ name, bytes: statSync(join(home, name)).size }));
}

// Records a move's progress on this machine in `moving/journal.json`. It is written before the coordinator may learn of
// it, so a killed crawler knows what a refusal with `moved` means.
//
// none → waiting (the coordinator decides) → settling (decided; the folder is being changed) → none; waiting → none
// when the coordinator welcomes the old identity.

const journalSchema = z.object({
  /** `out`: this crawler moves away. `in`: this host will run another one. */
  way: z.enum(["out", "in"]),
  moveId: z.int().min(1),
  /** The name of the moving crawler. */
  name: crawlerName,
  step: z.enum(["waiting", "settling"]),
});

export type MoveJournal = Readonly<z.infer<typeof journalSchema>>;

/** Contains everything of an undecided move. */
export const movingFolder = (home: string): string => join(home, "moving");

const journalFile = (home: string) => join(movingFolder(home), "journal.json");

/** Throws a ConfigError when it is damaged. */
export function readJournal(home: string): MoveJournal | null {
  return readPrivateJson(
    journalFile(home),
    journalSchema,
    "Ask the operator where this crawler runs now (nearcrawl fleet list); if it is to go on here, remove the folder moving.",
  );
}

/** Returns when the journal is on disk. */
export function writeJournal(home: string, journal: MoveJournal): void {
  writePrivateJson(journalFile(home), journal);
}

export function forgetMove(home: string): void {
  rmSync(movingFolder(home), { recursive: true, force: true });
}
