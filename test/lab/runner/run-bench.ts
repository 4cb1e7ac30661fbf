/** Runs one bench of a checkout to its end: its figures, or why there are none. */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import { dataFolderOf } from "#db/embedded-cluster";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { sharedDataFolder } from "../../support/shared-data.ts";
import { type Figure, figuresVariable } from "../figure.ts";

/** Path from the root of a checkout. */
export const benchFolder = "test/lab";

export interface Checkout {
  readonly root: string;
  /** A folder for what they reuse in the next round; its maker removes it. */
  readonly scratch: string;
}

export type BenchRun =
  | { readonly type: "measured"; readonly figures: readonly Figure[] }
  | { readonly type: "failed"; readonly words: string };

const longestMs = 10 * 60_000;
/** Time between SIGTERM and SIGKILL. */
const graceMs = 10_000;
const keptOutput = 4000;

/** Options of Node for a bench: TypeScript without a build, and garbage collection on request. */
const benchNodeArgs = ["--expose-gc", "--conditions=nearcrawl-source", "--import", "tsx"] as const;

export function benchNames(folder: string): readonly string[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(".bench.ts"));
  return files.map((file) => file.slice(0, -".bench.ts".length)).sort();
}

/** The bench of that name; otherwise all whose names contain the word. Throws UsageError where there is none. */
export function benchesCalled(word: string, names: readonly string[]): readonly string[] {
  const found = names.includes(word) ? [word] : names.filter((name) => name.includes(word));
  if (found.length === 0) throw new UsageError(`no bench has "${word}" in its name; --list names them`);
  return found;
}

/** Rejects with the signal's reason when it aborts; processes that the bench started are ended then. */
export async function runBench(
  checkout: Checkout,
  { name, args }: { readonly name: string; readonly args: readonly string[] },
  signal: AbortSignal,
): Promise<BenchRun> {
  const figuresFile = join(checkout.scratch, "figures.jsonl");
  rmSync(figuresFile, { force: true });
  const env = { [figuresVariable]: figuresFile };
  const { status, output } = await run([`${name}.bench.ts`, ...args], checkout, { env, signal });
  signal.throwIfAborted();
  if (status !== 0) return { type: "failed", words: `it ended with ${status}: ${lastWords(output)}` };
  if (!existsSync(figuresFile)) return { type: "failed", words: "it states no figures" };
  const lines = readFileSync(figuresFile, "utf8").trimEnd().split("\n");
  return { type: "measured", figures: lines.map((line) => JSON.parse(line) as Figure) };
}

/** Passes its output on. Resolves when it ends, and removes its temporary files and its database server. */
export async function runOpenly(
  checkout: Checkout,
  { name, args }: { readonly name: string; readonly args: readonly string[] },
  signal: AbortSignal,
): Promise<number | string> {
  const { status } = await run([`${name}.bench.ts`, ...args], checkout, { signal, isOpen: true });
  signal.throwIfAborted();
  return status;
}

/** In its own process group, which ends with it. The other checkout is elsewhere and finds the same data. */
async function run(
  [file, ...args]: readonly string[],
  { root, scratch }: Checkout,
  how: { readonly env?: NodeJS.ProcessEnv; readonly signal: AbortSignal; readonly isOpen?: boolean },
): Promise<{ readonly status: number | string; readonly output: string }> {
  const { env, signal, isOpen = false } = how;
  signal.throwIfAborted();
  const child = spawn(process.execPath, [...benchNodeArgs, join(benchFolder, file!), ...args], {
    cwd: root,
    env: { ...process.env, TMPDIR: scratch, NEARCRAWL_DATA: sharedDataFolder, ...env },
    stdio: isOpen ? "inherit" : ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-keptOutput);
    });
  const end = (by: NodeJS.Signals) => {
    try {
      process.kill(-child.pid!, by);
    } catch {
      // It has ended by itself.
    }
  };
  let hard: NodeJS.Timeout | undefined;
  const interrupt = () => {
    end("SIGINT");
    hard = setTimeout(() => end("SIGKILL"), graceMs);
  };
  const tooLong = setTimeout(interrupt, longestMs);
  signal.addEventListener("abort", interrupt, { once: true });
  const status = await new Promise<number | string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, by) => resolve(code ?? by ?? "no status"));
  });
  clearTimeout(tooLong);
  clearTimeout(hard);
  signal.removeEventListener("abort", interrupt);
  if (status !== 0) {
    end("SIGKILL");
    await stopServersIn(scratch);
  }
  return { status, output };
}

/** Servers of embedded databases that benches left behind; they are in no bench's process group. */
export async function stopServersIn(folder: string): Promise<void> {
  for (const home of homesIn(folder, 3)) await stopEmbeddedPostgres(home).catch(() => {});
}

function homesIn(folder: string, depth: number): readonly string[] {
  const own = existsSync(dataFolderOf(folder)) ? [folder] : [];
  if (depth === 0 || own.length > 0) return own;
  const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders.flatMap(({ name }) => homesIn(join(folder, name), depth - 1));
}

/** The line that names the error, if there is one. */
function lastWords(output: string): string {
  const lines = output.split("\n").map((line) => line.trim());
  const said = lines.filter((line) => line !== "");
  return (said.find((line) => /^\w*Error\b/.test(line)) ?? said.at(-1) ?? "it said nothing").slice(0, 200);
}
