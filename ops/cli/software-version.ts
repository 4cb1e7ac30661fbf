/** The version of this software, from package.json: two folders up in the source, three in dist/. */
import { readFileSync } from "node:fs";

export function softwareVersion(): string {
  for (const path of ["../../package.json", "../../../package.json"]) {
    try {
      const manifest = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as {
        version?: string;
      };
      if (manifest.version) return manifest.version;
    } catch {
      // The other place, then.
    }
  }
  return "unknown";
}
