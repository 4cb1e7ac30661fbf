/**
 * The program as users install it: packed by `npm pack` from a copy of this folder and installed globally into a temporary
 * folder, without a compiler and without development packages.
 */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { builtProgram, projectRoot } from "./built-command.ts";
import { folderOfRun, onceInRun } from "./once-in-run.ts";

const run = promisify(execFile);

export interface PackedProgram {
  readonly nearcrawl: string;
  /** The package's own package.json. */
  readonly manifest: Readonly<Record<string, unknown>>;
  /** The installed package. */
  readonly folder: string;
  /** The copy after packing. */
  readonly copy: string;
}

/** Installed once per run. A string says why it cannot be (no package registry is reachable). */
export async function packedProgram(): Promise<PackedProgram | string> {
  await builtProgram("ops/cli/main");
  return JSON.parse(await onceInRun("packed", 300_000, async () => JSON.stringify(await install())));
}

async function install(): Promise<PackedProgram | string> {
  const folder = folderOfRun("packed");
  const copy = join(folder, "copy");
  mkdirSync(copy);
  for (const name of ["package.json", "README.md", "LICENSE", "dist", "db", "ops"])
    cpSync(join(projectRoot, name), join(copy, name), { recursive: true });
  await npm(["pack", "--silent"], copy);
  const [tarball] = readdirSync(copy).filter((name) => name.endsWith(".tgz"));
  const prefix = join(folder, "global");
  const quiet = ["--omit=dev", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0"];
  try {
    await npm(["install", "--global", "--prefix", prefix, ...quiet, join(copy, tarball!)], folder);
  } catch (error) {
    const words = String((error as { stderr?: string }).stderr ?? error);
    if (/ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|network/i.test(words)) return words.slice(0, 300);
    throw error;
  }
  const installed = join(prefix, "lib/node_modules/nearcrawl");
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
  return { nearcrawl: join(prefix, "bin/nearcrawl"), manifest, folder: installed, copy };
}

async function npm(args: readonly string[], cwd: string): Promise<void> {
  // A compiler that always fails stands in for a missing one.
  const env = { ...process.env, CC: "/bin/false", CXX: "/bin/false" };
  await run("npm", [...args], { cwd, env, timeout: 240_000, maxBuffer: 1 << 26 });
}
