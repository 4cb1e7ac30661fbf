/** What the last check found, kept in the crawler's home, so that a start after a bad one checks again. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { CheckReport } from "./machine-check.ts";

const keptCheck = z.object({ at: z.iso.datetime(), isUsable: z.boolean() });

const lastCheckFile = (home: string) => join(home, "last-check.json");

/** A folder that cannot be written is one of the findings: nothing is kept then. */
export function keepCheck(home: string, { at, isUsable, findings }: CheckReport): void {
  try {
    const kept = { at: at.toISOString(), isUsable, findings };
    // A link in its place is not followed: root may be the one who writes here.
    rmSync(lastCheckFile(home), { force: true });
    writeFileSync(lastCheckFile(home), `${JSON.stringify(kept, null, 2)}\n`, { flag: "wx" });
  } catch {
    // The report itself says so.
  }
}

/** False, too, when none was kept. */
export function lastCheckFailed(home: string): boolean {
  try {
    return !keptCheck.parse(JSON.parse(readFileSync(lastCheckFile(home), "utf8"))).isUsable;
  } catch {
    return false;
  }
}
