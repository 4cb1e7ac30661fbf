/**
 * The programs as users have them: built, in dist/, where they start in a third of the time that the sources take.
 * Tests that start one never meet an old build: the first of a run that asks builds dist/ where a source is newer.
 */
import { execFile } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { onceInRun } from "./once-in-run.ts";

export const projectRoot = resolve(import.meta.dirname, "../..");
const sources = [
  "coordinator",
  "migrating-crawler",
  "rir-import",
  "db",
  "ops",
  "package.json",
  "tsconfig.json",
];
/** With room for a busy machine, which checks the types beside it; alone it takes three seconds. */
const buildTimeoutMs = 110_000;

export interface Outcome {
  /** -1: ended by a signal. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface CommandCircumstances {
  /** Given to the command by its environment. */
  readonly database?: { readonly url: string; readonly schema: string };
  /** Standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** It is ended then. */
  readonly withinMs?: number;
}

/** Runs `nearcrawl` with these arguments to its end. */
export async function nearcrawl(
  args: readonly string[],
  { database, input = "", env = {}, withinMs = 60_000 }: CommandCircumstances = {},
): Promise<Outcome> {
  const main = await builtProgram("ops/cli/main");
  const place = database ? { DATABASE_URL: database.url, NEARCRAWL_SCHEMA: database.schema } : {};
  const options = { env: { ...process.env, ...place, ...env }, timeout: withinMs, maxBuffer: 1 << 26 };
  return await new Promise((done) => {
    const child = execFile(process.execPath, [main, ...args], options, (_, out, err) => {
      done({ code: child.exitCode ?? -1, out, err });
    });
    child.stdin?.on("error", () => {}).end(input);
  });
}

/** The built file of a program, such as "migrating-crawler/main". */
export async function builtProgram(program: string): Promise<string> {
  await builtDoors();
  return join(projectRoot, "dist", `${program}.js`);
}

/**
 * dist/ is there, and no older than the sources: the doors lead to it from then on, for every process that is started
 * without the condition nearcrawl-source. Of all workers of a run one looks and builds, and the others wait for it.
 */
export async function builtDoors(): Promise<void> {
  const failure = await onceInRun("build", buildTimeoutMs, async () => (isBuilt() ? "" : await build()));
  if (failure !== "") throw new Error(`dist/ cannot be built: ${failure}`);
}

/** The folder has the time at which its build began. */
function isBuilt(): boolean {
  const dist = join(projectRoot, "dist");
  return (
    existsSync(dist) && sources.every((path) => newestMs(join(projectRoot, path)) <= statSync(dist).mtimeMs)
  );
}

/** Folders count, too: theirs is the time at which a file was last removed. */
function newestMs(path: string): number {
  const stats = statSync(path);
  if (!stats.isDirectory()) return stats.mtimeMs;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => newestMs(join(path, name))));
}

/** "", or what is wrong. The types are looked at once, by `npm test`. */
function build(): Promise<string> {
  return new Promise((done) => {
    execFile(process.execPath, [join(projectRoot, "ops/build.mjs"), "--unchecked"], (error, out, err) => {
      done(error ? `${out}${err}` || error.message : "");
    });
  });
}
