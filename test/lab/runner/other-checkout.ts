/**
 * Another commit, checked out beside this one for as long as it is measured. Its sources are measured by this checkout's
 * benches where these run on them, which makes an older commit comparable; by its own otherwise.
 */
import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { UsageError } from "#core/errors";
import { type Checkout, stopServersIn } from "./run-bench.ts";

export interface TwoCheckouts {
  readonly here: Checkout;
  /** With this checkout's benches. */
  readonly there: Checkout;
  /** With its own. */
  readonly thereByItself: Checkout;
}

const benches = "test/lab";
const ownBenches = "test/lab-of-its-own";
/** Where commits before the lab have theirs. */
const formerBenches = "test/bench";

/** The whole name of a commit. Throws UsageError where there is none of that name. */
export async function commitNamed(root: string, name: string): Promise<string> {
  try {
    return await git(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`]);
  } catch {
    throw new UsageError(`"${name}" names no commit of this repository`);
  }
}

/** Removes the checkout and all that the benches left, whatever becomes of the work. */
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
    const own = overlayBenches(root, other);
    if (build) for (const each of [root, other]) await buildIn(each, say);
    const there = scratch("there");
    return await work({
      here: { root, benches, scratch: scratch("here") },
      there: { root: other, benches, scratch: there },
      thereByItself: { root: other, benches: own, scratch: there },
    });
  } finally {
    await removeScratch(folder);
    await git(root, ["worktree", "prune"]).catch(() => {});
  }
}

interface CheckoutOptions {
  readonly root: string;
  readonly commit: string;
  /** dist/ is built in both. */
  readonly build: boolean;
  readonly say: (line: string) => void;
}

/** This checkout alone. */
export async function withoutCommit<Result>(
  { root, build, say }: Omit<CheckoutOptions, "commit">,
  work: (checkout: Checkout) => Promise<Result>,
): Promise<Result> {
  const scratch = scratchFolder();
  try {
    if (build) await buildIn(root, say);
    return await work({ root, benches, scratch });
  } finally {
    await removeScratch(scratch);
  }
}

/** An embedded server that runs under another account passes through. */
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
 * Its packages are ours where both lock files say the same. One by one and not as a whole folder: a build links the
 * command into `node_modules/.bin`.
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

/** Gives the folder that the other's own benches are in. */
function overlayBenches(root: string, other: string): string {
  const hasLab = existsSync(join(other, benches));
  if (hasLab) renameSync(join(other, benches), join(other, ownBenches));
  cpSync(join(root, benches), join(other, benches), { recursive: true });
  return hasLab ? ownBenches : formerBenches;
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
