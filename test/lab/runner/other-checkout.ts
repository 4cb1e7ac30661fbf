/**
 * Another commit, checked out beside this one while it is measured. This checkout's benches measure its sources, so that older
 * commits are comparable.
 */
import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { UsageError } from "#core/errors";
import { benchFolder, type Checkout, stopServersIn } from "./run-bench.ts";

export interface TwoCheckouts {
  readonly here: Checkout;
  readonly there: Checkout;
}

/** The full hash of a commit. Throws UsageError for an unknown name. */
export async function commitNamed(root: string, name: string): Promise<string> {
  try {
    return await git(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`]);
  } catch {
    throw new UsageError(`"${name}" names no commit of this repository`);
  }
}

/** Removes the checkout and everything that the benches left, even if the work fails. */
export async function withCommit<Result>(
  { root, commit, build, say }: CheckoutOptions,
  work: (checkouts: TwoCheckouts) => Promise<Result>,
): Promise<Result> {
  const folder = scratchFolder();
  const other = join(folder, "checkout");
  const scratch = (name: string) => {
    const made = join(folder, name);
    mkdirSync(made);
    chmodSync(made, 0o755);
    return made;
  };
  try {
    await git(root, ["worktree", "add", "--quiet", "--detach", other, commit]);
    await giveDependencies(root, other, say);
    rmSync(join(other, benchFolder), { recursive: true, force: true });
    cpSync(join(root, benchFolder), join(other, benchFolder), { recursive: true });
    if (build) for (const each of [root, other]) await buildIn(each, say);
    return await work({
      here: { root, scratch: scratch("here") },
      there: { root: other, scratch: scratch("there") },
    });
  } finally {
    await removeScratch(folder);
    await git(root, ["worktree", "prune"]).catch(() => {});
  }
}

interface CheckoutOptions {
  readonly root: string;
  readonly commit: string;
  /** `dist/` is built in both. */
  readonly build: boolean;
  readonly say: (line: string) => void;
}

/** Only this checkout. */
export async function withoutCommit<Result>(
  { root, build, say }: Omit<CheckoutOptions, "commit">,
  work: (checkout: Checkout) => Promise<Result>,
): Promise<Result> {
  const scratch = scratchFolder();
  try {
    if (build) await buildIn(root, say);
    return await work({ root, scratch });
  } finally {
    await removeScratch(scratch);
  }
}

/** An embedded server that runs under another account may enter. */
function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "nearcrawl-benches-"));
  chmodSync(folder, 0o755);
  return folder;
}

async function removeScratch(folder: string): Promise<void> {
  await stopServersIn(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/**
 * Links our packages if both lock files are equal, one by one: a build links the command into `node_modules/.bin`, so the
 * whole folder cannot be shared.
 */
async function giveDependencies(root: string, other: string, say: (line: string) => void): Promise<void> {
  const lock = (of: string) => readFileSync(join(of, "package-lock.json"), "utf8");
  if (lock(root) !== lock(other)) {
    say("its dependencies are others: npm ci");
    await run("npm", ["ci", "--no-audit", "--no-fund"], other);
    return;
  }
  const modules = join(other, "node_modules");
  mkdirSync(modules);
  for (const name of readdirSync(join(root, "node_modules")))
    if (name !== ".bin") symlinkSync(join(root, "node_modules", name), join(modules, name));
}

async function buildIn(root: string, say: (line: string) => void): Promise<void> {
  say(`building ${root}`);
  await run(process.execPath, [join(root, "ops/build.mjs"), "--unchecked"], root);
}

async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { cwd, maxBuffer: 2 ** 26 });
  return stdout.trim();
}

async function git(root: string, args: readonly string[]): Promise<string> {
  return await run("git", ["-C", root, ...args], root);
}
