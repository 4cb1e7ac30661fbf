/**
 * The folder of real registry dumps, latency matrices and public test suites beside the project. Without it, the tests that use
 * it are skipped with a message.
 */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const projectRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const sharedDataFolder = resolve(projectRoot, process.env.NEARCRAWL_DATA ?? "../shared/data");
const announced = new Set<string>();

/** Returns the path of a file or folder in it, or null with a message on standard error. */
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
