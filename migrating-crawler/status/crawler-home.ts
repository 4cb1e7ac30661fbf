/** The folder that a command looks into: a crawler's, joined or given its key by hand, or the command says so. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import { folderKind } from "../membership/home-folder.ts";

/** Throws a UsageError for a folder in which no crawler has ever been. */
export function checkCrawlerHome(home: string): void {
  if (folderKind(home) === "crawler" || existsSync(join(home, "spool"))) return;
  throw new UsageError(`${home} is no crawler's folder: name the right one with --home`);
}
