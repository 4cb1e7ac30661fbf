/**
 * Builds the crawler's one file of a folder of sources. Of the same commit and packages it is the same file wherever
 * it is made, so that anybody can check what a signed release was made of.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { z } from "zod";
import { UsageError } from "#core/errors";
import { readStopWords } from "#crawler/extract/stop-words";

export interface BuiltBundle {
  readonly file: string;
  /** SHA-256, hex. */
  readonly digest: string;
  readonly bytes: number;
  /** The commit; null: the folder is no clone, or holds what was not committed. */
  readonly builtFrom: string | null;
}

const entry = "migrating-crawler/bundle-entry.ts";
const bundler = "ops/bundle-crawler.mjs";

/** What stands beside a bundle, so that signing it can say what it was built from. */
const note = z.object({ digest: z.string(), builtFrom: z.string().nullable() });
const noteFile = (bundle: string) => `${bundle}.json`;

interface Bundler {
  bundleCrawler(settings: {
    readonly root: string;
    readonly outfile: string;
    readonly stopWords: Readonly<Record<string, readonly string[]>>;
  }): Promise<void>;
}

/** `source`: a clone with its packages installed. Writes the bundle and a note beside it. */
export async function buildBundle({ source, out }: { source: string; out: string }): Promise<BuiltBundle> {
  if (!hasSources(source)) {
    throw new UsageError(
      `${source} does not hold the crawler's sources: name a clone of the project with --source`,
    );
  }
  const root = realpathSync(source);
  // Before anything is written into it.
  const builtFrom = commitOf(root);
  const { bundleCrawler } = (await import(pathToFileURL(join(root, bundler)).href)) as Bundler;
  await bundleCrawler({ root, outfile: out, stopWords: readStopWords() });
  const bytes = readFileSync(out);
  const digest = createHash("sha256").update(bytes).digest("hex");
  writeFileSync(noteFile(out), `${JSON.stringify({ digest, builtFrom }, null, 2)}\n`);
  return { file: out, digest, bytes: bytes.length, builtFrom };
}

/** The commit that the note beside the bundle names, if it speaks of this very bundle. */
export function notedCommit(bundle: string, digest: string): string | null {
  if (!existsSync(noteFile(bundle))) return null;
  const read = note.safeParse(jsonOf(readFileSync(noteFile(bundle), "utf8")));
  return read.success && read.data.digest === digest ? read.data.builtFrom : null;
}

export function hasSources(folder: string): boolean {
  return existsSync(join(folder, entry)) && existsSync(join(folder, bundler));
}

/** The folder of this installation: of the sources, or of the package. */
export function projectFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json")) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}

function commitOf(root: string): string | null {
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", root, ...args], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    return git("status", "--porcelain") === "" ? git("rev-parse", "HEAD") : null;
  } catch {
    return null;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
