/**
 * Runs the built programs in dist/, which start three times as fast as the sources. The first test of a run that needs them
 * rebuilds dist/ when a source is newer.
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
/** Three seconds on an idle machine; `npm test` checks the types at the same time. */
const buildTimeoutMs = 110_000;

export interface Outcome {
  /** -1 when a signal ended it. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface CommandCircumstances {
  /** Passed in the environment. */
  readonly database?: { readonly url: string; readonly schema: string };
  /** Standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The command is killed afterwards. */
  readonly withinMs?: number;
}

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
 * Makes sure that dist/ is no older than the sources, so that processes without the condition nearcrawl-source find it. One
 * worker of the run builds; the others wait for it.
 */
export async function builtDoors(): Promise<void> {
  const failure = await onceInRun("build", buildTimeoutMs, async () => (isBuilt() ? "" : await build()));
  if (failure !== "") throw new Error(`dist/ cannot be built: ${failure}`);
}

/** The build gives dist/ the time at which it began. */
function isBuilt(): boolean {
  const dist = join(projectRoot, "dist");
  return (
    existsSync(dist) && sources.every((path) => newestMs(join(projectRoot, path)) <= statSync(dist).mtimeMs)
  );
}

/** A folder's time shows when a file was last removed. */
function newestMs(path: string): number {
  const stats = statSync(path);
  if (!stats.isDirectory()) return stats.mtimeMs;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => newestMs(join(path, name))));
}

/** Returns "" or the fault. Types are not checked here: `npm test` does that once. */
function build(): Promise<string> {
  return new Promise((done) => {
    execFile(process.execPath, [join(projectRoot, "ops/build.mjs"), "--unchecked"], (error, out, err) => {
      done(error ? `${out}${err}` || error.message : "");
    });
  });
}
