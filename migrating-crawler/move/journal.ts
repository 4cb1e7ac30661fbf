/**
 * How far a move has come on this machine, in `moving/journal.json` of the crawler's folder. Written before the
 * coordinator may hear of it, so that a crawler that is killed knows what a refusal with `moved` means for it.
 *
 *   none → waiting (the coordinator decides) → settling (it has decided; the folder is being changed) → none
 *   waiting → none, when the coordinator welcomes this crawler as who it was
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { crawlerName } from "#protocol/invitation";
import { readPrivateJson, writePrivateJson } from "../membership/private-file.ts";

const journalSchema = z.object({
  /** `out`: this host's crawler goes elsewhere. `in`: this host is to run another one. */
  way: z.enum(["out", "in"]),
  moveId: z.int().min(1),
  /** Of the crawler that moves. */
  name: crawlerName,
  step: z.enum(["waiting", "settling"]),
});
export type MoveJournal = Readonly<z.infer<typeof journalSchema>>;

/** Everything of a move that is not decided is in it. */
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

/** On the disk when this returns. */
export function writeJournal(home: string, journal: MoveJournal): void {
  writePrivateJson(journalFile(home), journal);
}

export function forgetMove(home: string): void {
  rmSync(movingFolder(home), { recursive: true, force: true });
}
