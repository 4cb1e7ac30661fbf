/**
 * Builds the crawler's bundle from a source folder. Equal commits and packages give equal bytes, so that anybody can verify a
 * signed release.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { z } from "zod";
import { UsageError } from "#core/errors";
import { readStopWords } from "#core/words/stop-words-resolver";

interface BuiltBundle {
  readonly file: string;
  readonly digest: string;
  readonly bytes: number;
  /** The commit. Null when the folder is not a clone or has uncommitted changes. */
  readonly builtFrom: string | null;
}

const entry = "migrating-crawler/bundle-entry.ts";
const bundler = "ops/bundle-crawler.mjs";

/** A note beside the bundle tells signing from which source it was built. */
const note = z.object({ digest: z.string(), builtFrom: z.string().nullable() });
const noteFile = (bundle: string) => `${bundle}.json`;

interface Bundler {
  bundleCrawler(settings: {
    readonly root: string;
    readonly outfile: string;
    readonly stopWords: Readonly<Record<string, readonly string[]>>;
  }): Promise<void>;
}

/** `source` is a clone with its packages installed. Writes the bundle and the note beside it. */
export async function buildBundle({ source, out }: { source: string; out: string }): Promise<BuiltBundle> {
  if (!hasSources(source)) {
    throw new UsageError(
      `${source} does not hold the crawler's sources: name a clone of the project with --source`,
    );
  }
  const root = realpathSync(source);
  // Read before this build writes anything into the folder.
  const builtFrom = commitOf(root);
  const { bundleCrawler } = (await import(pathToFileURL(join(root, bundler)).href)) as Bundler;
  await bundleCrawler({ root, outfile: out, stopWords: readStopWords() });
  const bytes = readFileSync(out);
  const digest = createHash("sha256").update(bytes).digest("hex");
  writeFileSync(noteFile(out), `${JSON.stringify({ digest, builtFrom }, null, 2)}\n`);
  return { file: out, digest, bytes: bytes.length, builtFrom };
}

/** Returns the commit in the note beside the bundle, provided that the note describes this bundle. */
export function notedCommit(bundle: string, digest: string): string | null {
  if (!existsSync(noteFile(bundle))) return null;
  const read = note.safeParse(jsonOf(readFileSync(noteFile(bundle), "utf8")));
  return read.success && read.data.digest === digest ? read.data.builtFrom : null;
}

function hasSources(folder: string): boolean {
  return existsSync(join(folder, entry)) && existsSync(join(folder, bundler));
}

/** The folder of this installation, which runs from sources or from a package. */
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
