/** Work that a run does once for all of its processes: the first caller does it, and the others wait. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { until } from "./until.ts";

/** Returns a folder that stays until the run ends. */
export function folderOfRun(name: string): string {
  return join(inject("databaseHome"), name);
}

/** Returns the first caller's result, or throws its error, in every process. `name` identifies the work. */
export async function onceInRun(
  name: string,
  withinMs: number,
  work: () => Promise<string>,
): Promise<string> {
  const folder = folderOfRun(name);
  const outcome = join(folder, "outcome.json");
  if (isFirst(folder)) {
    const told = await work().then(
      (text) => ({ text }),
      (error: unknown) => ({ failure: String(error) }),
    );
    writeFileSync(`${outcome}.new`, JSON.stringify(told));
    renameSync(`${outcome}.new`, outcome);
  }
  await until(() => existsSync(outcome), withinMs);
  const { text, failure } = JSON.parse(readFileSync(outcome, "utf8")) as { text?: string; failure?: string };
  if (text === undefined) throw new Error(failure);
  return text;
}

function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}
