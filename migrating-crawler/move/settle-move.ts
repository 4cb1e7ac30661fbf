/**
 * The coordinator has decided a move, and this folder is changed accordingly: the other host's folder becomes the
 * crawler that has moved, and that crawler's old folder keeps nothing by which it could run. Each step can be done
 * again, so that a process that is killed in the middle goes on from the journal when it is started.
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { identityFile } from "../membership/identity.ts";
import { membershipFile, readMembership, writeMembership } from "../membership/membership.ts";
import { writePrivateJson } from "../membership/private-file.ts";
import { forgetMove, type MoveJournal, readJournal, writeJournal } from "./journal.ts";
import { keptFiles, packFile } from "./pack.ts";
import { arrivedFolder } from "./receive-pack.ts";

/** `became`: this folder's crawler has another name now. `gone`: it runs elsewhere. */
export type Settled = "nothing" | "became" | "gone";

/** In a folder whose crawler has gone elsewhere: whose it was. */
export const movedFile = (home: string): string => join(home, "moved.json");

/** The coordinator has said `moved`. `nothing`: this folder takes part in no move, and nothing was changed. */
export function settleMove(home: string): Settled {
  const journal = readJournal(home);
  if (journal === null) return "nothing";
  writeJournal(home, { ...journal, step: "settling" });
  return finishMove(home);
}

/** What an earlier process has begun. Before anything else is opened in the folder. */
export function finishMove(home: string): Settled {
  const journal = readJournal(home);
  if (journal === null || journal.step !== "settling") return "nothing";
  for (const step of settlingSteps(home, journal)) step();
  return journal.way === "in" ? "became" : "gone";
}

/** In order; each does nothing where it was done. */
export function settlingSteps(home: string, journal: MoveJournal): (() => void)[] {
  return journal.way === "in" ? becoming(home, journal) : leaving(home, journal);
}

function becoming(home: string, { name }: MoveJournal): (() => void)[] {
  const arrived = (file: string) => join(arrivedFolder(home), file);
  return [
    () => {
      if (existsSync(arrived("spool"))) rmSync(join(home, "spool"), { recursive: true, force: true });
    },
    ...["spool", ...keptFiles].map((file) => () => {
      if (existsSync(arrived(file))) renameSync(arrived(file), join(home, file));
    }),
    () => {
      const membership = readMembership(home);
      if (membership !== null && membership.name !== name) writeMembership(home, { ...membership, name });
    },
    () => forgetMove(home),
  ];
}

/** The private key first; the membership last, since without it nothing would look at the journal again. */
function leaving(home: string, { name, moveId }: MoveJournal): (() => void)[] {
  const kept = ["spool", ...keptFiles].map((file) => join(home, file));
  const ours = [identityFile(home), ...kept, packFile(home)];
  return [
    () => writePrivateJson(movedFile(home), { name, moveId }),
    ...[...ours, membershipFile(home)].map((path) => () => {
      for (const one of [path, `${path}.before`]) rmSync(one, { recursive: true, force: true });
    }),
    () => forgetMove(home),
  ];
}
