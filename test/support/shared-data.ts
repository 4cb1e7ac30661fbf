/**
 * The folder of real registry dumps, latency matrices and public test suites that is kept beside the
 * project, never in it. Tests that use it are skipped where it is absent, and say so.
 */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const projectRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const sharedDataFolder = resolve(projectRoot, process.env.NEARCRAWL_DATA ?? "../shared/data");
const announced = new Set<string>();

/** The path of a file or folder in the shared data, or null (said once on standard error) when it is absent. */
export function sharedData(relativePath: string): string | null {
  const path = join(sharedDataFolder, relativePath);
  if (existsSync(path)) return path;
  if (!announced.has(relativePath)) {
    announced.add(relativePath);
    process.stderr.write(
      `skipped: tests on ${relativePath}: the shared data folder is absent (NEARCRAWL_DATA)\n`,
    );
  }
  return null;
}
