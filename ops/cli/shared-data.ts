/** The folder of measured data outside the project: NEARCRAWL_DATA, by default ../shared/data. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

interface SharedFile {
  readonly path: string;
  readonly isThere: boolean;
  /** Says what is missing, and where. */
  readonly absence: string;
}

/** `file` is relative to that folder, with slashes. */
export function sharedFile(file: string, env: NodeJS.ProcessEnv = process.env): SharedFile {
  const path = join(resolve(env.NEARCRAWL_DATA || "../shared/data"), file);
  const name = path.slice(dirname(path).length + 1);
  return { path, isThere: existsSync(path), absence: `${name} is not in ${dirname(path)} (NEARCRAWL_DATA)` };
}
