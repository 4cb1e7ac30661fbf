/**
 * Runs one of our own commands beside the coordinator, with low priority and bounded time, memory and output. Its progress
 * arrives over an IPC channel, whose end also tells the command that the coordinator is gone. Its result is the JSON on
 * standard output, and its error the text on standard error.
 */
import { type ChildProcess, fork } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { constants, setPriority } from "node:os";
import { join, resolve } from "node:path";
import type {
  CommandEnd,
  FilesPlace,
  JobStep,
  RegistryOrder,
  RunningCommand,
} from "#coordinator/run/registry/jobs";
import type { RegistryHost } from "#coordinator/run/registry/registry-view";
import { sourceRows } from "#rir-import/download/cache-manifest";
import { cacheFolderOf, settingsOf } from "../rir/cache-options.ts";
import { askerVariables, jobMark, jobStep } from "../rir/job-steps.ts";

interface CommandBounds {
  readonly minutes: number;
  /** Limit on resident memory, read from /proc. Elsewhere only JavaScript's heap is bounded. */
  readonly megabytes: number;
}

interface OwnCommand {
  readonly entry: string;
  readonly execArgv: readonly string[];
  readonly args: readonly string[];
  /** Variables added to this process's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly bounds: CommandBounds;
}

const watchMs = 1000;
const stopGraceMs = 15_000;
const mostAnswerBytes = 32_000_000;
const mostComplaintCharacters = 4000;

export function runCommand(command: OwnCommand, onStep: (step: JobStep) => void): RunningCommand {
  const child = fork(command.entry, command.args, {
    execArgv: [...ownArguments(command.execArgv), `--max-old-space-size=${command.bounds.megabytes}`],
    env: { ...process.env, ...command.env, ...jobMark },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // Ctrl-C must reach only the coordinator, which ends its jobs in order.
    detached: true,
  });
  const running = new Running(child, command.bounds);
  child.on("message", (message) => {
    const step = jobStep.safeParse(message);
    if (step.success) onStep(step.data);
  });
  return { ended: running.ended, stop: () => running.stop("") };
}

/** Two processes cannot use the same debugger port. */
function ownArguments(execArgv: readonly string[]): readonly string[] {
  return execArgv.filter((argument) => !argument.startsWith("--inspect"));
}

class Running {
  readonly ended: Promise<CommandEnd>;
  readonly #child: ChildProcess;
  readonly #bounds: CommandBounds;
  readonly #startedMs = performance.now();
  readonly #answer: Buffer[] = [];
  #answerBytes = 0;
  #complaint = "";
  /** Why the command was killed. */
  #why = "";
  #kill: NodeJS.Timeout | null = null;

  constructor(child: ChildProcess, bounds: CommandBounds) {
    this.#child = child;
    this.#bounds = bounds;
    child.stdout?.on("data", (piece: Buffer) => this.#takeAnswer(piece));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-mostComplaintCharacters);
    });
    lowerPriority(child);
    const watch = setInterval(() => void this.#watch(), watchMs);
    this.ended = new Promise<CommandEnd>((resolve) => {
      // `close` follows all output. When the process never started, only `error` is emitted.
      child.once("error", (error) => resolve(this.#end(null, `it could not be started: ${error.message}`)));
      child.once("close", (code) => resolve(this.#end(code, "")));
    }).finally(() => {
      clearInterval(watch);
      if (this.#kill) clearTimeout(this.#kill);
    });
  }

  stop(why: string): void {
    if (this.#kill) return;
    this.#why = why;
    this.#child.kill("SIGTERM");
    this.#kill = setTimeout(() => this.#child.kill("SIGKILL"), stopGraceMs);
  }

  #takeAnswer(piece: Buffer): void {
    this.#answerBytes += piece.length;
    if (this.#answerBytes <= mostAnswerBytes) this.#answer.push(piece);
    else this.stop(`it printed more than ${mostAnswerBytes / 1e6} MB`);
  }

  async #watch(): Promise<void> {
    const { minutes, megabytes } = this.#bounds;
    if (performance.now() - this.#startedMs > minutes * 60_000) {
      this.stop(`it took longer than ${minutes} minutes, its bound (registry.jobMinutes)`);
    }
    const used = await residentMegabytes(this.#child.pid);
    if (used > megabytes) {
      this.stop(`it took more than ${megabytes} MB of memory, its bound (registry.jobMegabytes)`);
    }
  }

  #end(exitCode: number | null, fault: string): CommandEnd {
    const words = this.#why || fault || withoutPrefix(this.#complaint) || signalWords(this.#child);
    return { exitCode, words, result: parsed(Buffer.concat(this.#answer).toString("utf8")) };
  }
}

function lowerPriority({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process then keeps the normal priority.
  }
}

/** Returns 0 when the memory is unknown. */
async function residentMegabytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024;
}

function withoutPrefix(complaint: string): string {
  return complaint.trim().replace(/^nearcrawl: /gm, "");
}

function signalWords({ signalCode }: ChildProcess): string {
  return signalCode === null ? "" : `it was ended by ${signalCode}`;
}

/** Returns null when the JSON is missing or incomplete. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// How this installation runs registry jobs: with its own `nearcrawl rir` commands, cache and files.

interface RegistryHostSettings {
  /** The entry file of this process and its arguments to Node. */
  readonly own: { readonly entry: string; readonly execArgv: readonly string[] };
  readonly home: string;
  readonly schema: string;
  readonly databaseUrl: string;
  readonly filesFolder: string | null;
  readonly bounds: CommandBounds;
}

/** Maximum number of folders listed to choose from. */
const mostFolders = 200;

/** How many samples a plan's pages show per kind of change. */
const planSamples = 300;

export function registryHost(settings: RegistryHostSettings): RegistryHost {
  const { own, home, schema, databaseUrl, bounds } = settings;
  return {
    commands: {
      start: (order, asker, onStep) =>
        runCommand(
          {
            ...own,
            args: ["rir", ...wordsOf(order, settings), "--home", home, "--json"],
            // The URL may contain a password, and every user of the machine can see a process's arguments.
            env: { DATABASE_URL: databaseUrl, NEARCRAWL_SCHEMA: schema, ...askerVariables(asker) },
            bounds,
          },
          onStep,
        ),
    },
    cache: async (now) => {
      const folder = cacheFolderOf({ home });
      const { sources, contact } = await settingsOf({ home });
      return { folder, contact, sources: await sourceRows(sources, folder, now) };
    },
    filesFolder: async () => {
      const path = settings.filesFolder;
      return path === null ? null : { path: resolve(path), names: await foldersIn(path) };
    },
  };
}

function wordsOf(order: RegistryOrder, settings: RegistryHostSettings): readonly string[] {
  switch (order.type) {
    case "fetch":
      return ["fetch", ...(order.acceptSmaller ? ["--accept-smaller"] : [])];
    case "plan":
      return ["plan", ...filesOf(order.files, settings), "--samples", String(planSamples)];
    case "apply":
      return ["apply", ...filesOf(order.files, settings), "--planned", order.fingerprint, ...meantOf(order)];
    case "rollback":
      return [
        "rollback",
        "--in-force",
        String(order.generation),
        ...(order.toEmpty ? ["--to-empty"] : []),
        ...meantOf(order),
      ];
    case "rollforward":
      return ["rollforward", String(order.generation)];
  }
}

const meantOf = (order: {
  readonly removeInUse?: number | undefined;
  readonly loseFacts?: number | undefined;
}) => [
  ...(order.removeInUse === undefined ? [] : ["--yes-remove", String(order.removeInUse)]),
  ...(order.loseFacts === undefined ? [] : ["--yes-lose", String(order.loseFacts)]),
];

/** The name is one of `foldersIn`. The caller has checked that. */
function filesOf(place: FilesPlace, { filesFolder }: RegistryHostSettings): readonly string[] {
  if (place.from === "cache") return ["--cache"];
  if (filesFolder === null) throw new TypeError("no folder of files is allowed");
  return [join(resolve(filesFolder), place.name)];
}

/** Lists direct subfolders without links, which may lead anywhere. Returns an empty list when the folder is unreadable. */
async function foldersIn(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map(({ name }) => name)
    .sort()
    .slice(0, mostFolders);
}
