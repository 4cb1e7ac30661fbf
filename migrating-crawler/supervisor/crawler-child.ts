/**
 * One crawler process, from its start to its end: its lines passed on, its messages checked, its silence noticed, its end put into words. What
 * follows from an end is the dock's matter.
 *
 *   starting → (healthy) → stopping → ended, or ended from anywhere by itself
 */

import { type ChildProcess, spawn } from "node:child_process";
import { finished } from "node:stream/promises";
import { StringDecoder } from "node:string_decoder";
import { ConfigError } from "#core/errors";
import { timerMs } from "#core/timer-ms";
import { type CrawlerToDock, crawlerToDock, type DockMessage } from "../core/supervisor-messages.ts";

export interface ChildEnd {
  /** How it ended and what it said last. */
  readonly words: string;
  /** The dock had asked for it, or the process went with 0. */
  readonly inOrder: boolean;
  /** Somebody or something else ended it (a signal, the kernel for its memory, a full disk): it says nothing of the release. */
  readonly isFromOutside: boolean;
  /** What the coordinator said when it wanted no more of this crawler; null: it said no such thing. */
  readonly refused: { readonly reason: string; readonly isRemoved: boolean } | null;
  readonly livedMs: number;
}

interface ChildSettings {
  readonly command: ChildCommand;
  readonly onMessage: (message: CrawlerToDock) => void;
  /** A line that it wrote, without its end. */
  readonly onLine: (line: string) => void;
  /** Called once. */
  readonly onEnd: (end: ChildEnd) => void;
  /** Without a sign of life for so long it is stuck, and is ended. */
  readonly silenceMs: number;
  /** Asked to stop, it may take so long. */
  readonly stopMs: number;
}

/** Signs of life are looked for so often within `silenceMs`: a machine that slept for an hour has missed one look. */
const looksPerSilence = 4;

/** After its end; nobody else holds the other ends of its pipes. */
const readOutMs = 1000;

export class CrawlerChild {
  readonly #settings: ChildSettings;
  readonly #process: ChildProcess;
  readonly #lastWords = new LastWords();
  readonly #startedMs = performance.now();
  readonly ended: Promise<void>;
  readonly #looking: NodeJS.Timeout;
  #resolveEnded: () => void = () => {};
  #missedLooks = 0;
  #refused: ChildEnd["refused"] = null;
  #endedBecause: string | null = null;
  #asked = false;
  #over = false;

  constructor(settings: ChildSettings) {
    this.#settings = settings;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    const { args, env } = settings.command;
    this.#process = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe", "ipc"] });
    this.#listen();
    this.#looking = setInterval(() => this.#look(), timerMs(settings.silenceMs / looksPerSilence));
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** False: it is not there to hear it. */
  send(message: DockMessage): boolean {
    if (!this.#process.connected) return false;
    this.#process.send(message, () => {});
    return true;
  }

  /** Asks it to end; ends it when it takes too long. Resolves when it is gone. */
  async stop(): Promise<void> {
    this.#asked = true;
    this.send({ type: "stop" });
    const late = setTimeout(() => {
      this.end(`it did not stop within ${this.#settings.stopMs / 1000} s and was ended`);
    }, this.#settings.stopMs);
    await this.ended;
    clearTimeout(late);
  }

  /** At once. */
  end(because: string): void {
    if (this.#over) return;
    this.#endedBecause ??= because;
    this.#process.kill("SIGKILL");
  }

  #listen(): void {
    const { onLine } = this.#settings;
    const [output, errors] = [
      new LineSplitter(onLine),
      new LineSplitter((line) => {
        this.#lastWords.add(line);
        onLine(line);
      }),
    ];
    this.#process.stdout?.on("data", (piece: Buffer) => output.add(piece));
    this.#process.stderr?.on("data", (piece: Buffer) => errors.add(piece));
    this.#process.on("message", (message) => this.#take(message));
    this.#process.on("error", (error) => this.#onProcessError(error));
    // Not `close`, which does not come after the child has closed the IPC channel.
    this.#process.on("exit", async (code, signal) => {
      await this.#readOut();
      output.end();
      errors.end();
      this.#end(signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`, {
        isWell: code === 0,
        isFromOutside: signal !== null && !ownSignals.has(signal),
      });
    });
  }

  /** What it said last may still be in the pipes. */
  async #readOut(): Promise<void> {
    const pipes = [this.#process.stdout, this.#process.stderr].filter((pipe) => pipe !== null);
    const signal = AbortSignal.timeout(readOutMs);
    await Promise.all(pipes.map((pipe) => finished(pipe, { signal }).catch(() => {})));
  }

  /** It could not be started, or a message to it was lost with it. */
  #onProcessError(error: Error): void {
    if (this.#process.pid === undefined)
      this.#end(`it could not be started: ${error.message}`, { isWell: false, isFromOutside: true });
  }

  #take(message: unknown): void {
    const { data } = crawlerToDock.safeParse(message);
    if (data === undefined || this.#over) return;
    this.#missedLooks = 0;
    if (data.type === "refused") this.#refused = { reason: data.reason, isRemoved: data.code === "revoked" };
    this.#settings.onMessage(data);
  }

  #look(): void {
    this.#missedLooks += 1;
    if (this.#missedLooks <= looksPerSilence) return;
    this.end(`it gave no sign of life for ${this.#settings.silenceMs / 1000} s and was ended`);
  }

  #end(how: string, end: { readonly isWell: boolean; readonly isFromOutside: boolean }): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#looking);
    const words = this.#lastWords.reason(this.#endedBecause ?? how);
    const isOurs = this.#endedBecause !== null;
    this.#settings.onEnd({
      words,
      inOrder: !isOurs && (this.#asked || end.isWell),
      isFromOutside: !isOurs && (end.isFromOutside || wantOfRoom.test(words)),
      refused: this.#refused,
      livedMs: performance.now() - this.#startedMs,
    });
    this.#resolveEnded();
  }
}

// Lines of a process's output, from the pieces in which it arrives: each of a bounded length, also without an end.

/** A longer line is cut into several. */
const mostCharacters = 16_384;

class LineSplitter {
  readonly #onLine: (line: string) => void;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  add(piece: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(piece)).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#give(line);
    while (this.#rest.length > mostCharacters) {
      this.#give(this.#rest.slice(0, mostCharacters));
      this.#rest = this.#rest.slice(mostCharacters);
    }
  }

  /** What stands there without a line's end is a line, too. */
  end(): void {
    if (this.#rest !== "") this.#give(this.#rest);
    this.#rest = "";
  }

  #give(line: string): void {
    for (let from = 0; from === 0 || from < line.length; from += mostCharacters) {
      this.#onLine(line.slice(from, from + mostCharacters));
    }
  }
}

// What a process said last, and how it ended: kept short, for the log, the next process and the coordinator.

/** Lines of standard error, and characters of each. */
const mostLines = 20;

const mostLineCharacters = 300;

/** Of the protocol's `words`. */
const mostReasonCharacters = 500;

class LastWords {
  #lines: string[] = [];

  add(line: string): void {
    const text = line.trim();
    if (text === "") return;
    this.#lines.push(text.slice(0, mostLineCharacters));
    if (this.#lines.length > mostLines) this.#lines.shift();
  }

  /** How it ended, then as many of the last lines as there is room for; the newest are kept. */
  reason(end: string): string {
    const said = this.#lines.filter(isTelling).join(" | ");
    if (said === "") return end.slice(0, mostReasonCharacters);
    const room = mostReasonCharacters - end.length - 2;
    return room < 20 ? end.slice(0, mostReasonCharacters) : `${end}: ${said.slice(-room)}`;
  }
}

/** By which a process ends itself, as V8 does when its heap is full. Any other was sent: by people, the system, the kernel. */
const ownSignals: ReadonlySet<string> = new Set([
  ...["SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"],
]);

/** The system's own codes, in what Node says of a disk, memory, descriptors or processes that this machine has not. */
const wantOfRoom = /\b(ENOSPC|EDQUOT|EROFS|EIO|ENOMEM|EMFILE|ENFILE|EAGAIN)\b/;

/** Where in the bundle it happened says nothing to anybody at the other end. */
const isTelling = (line: string) => !/^(at |\^|node:internal|file:\/\/|Node\.js v)/.test(line);

// How the dock starts a crawler: Node's permission model lets it read its own bundle and its home, write its own
// files there, and start threads, but no process and no native code; the environment has nothing of the dock's but
// the few names below. The model is a belt against mistakes, not a wall against hostile code (Node's own words): what
// may run at all is decided by signatures, and what it can reach by the user, unit or container that the dock runs in.

interface ChildPlace {
  readonly bundle: string;
  /** Real path, as those below: links are not followed out of it. */
  readonly home: string;
  /** Files and folders besides that may be read: certificates. */
  readonly readable: readonly string[];
  /** Folders besides that may be written (and read): of WARC files. */
  readonly writable: readonly string[];
}

interface ChildCommand {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * What the crawler writes in its home, by how the names begin: a file's draft lies beside it (`status.json.new`).
 * All else there it may only read: what the dock goes by (releases/, settings.toml, dock.pid) and its log.
 * `crawler` is a folder that is free for what later releases want to keep; a dock is older than they are.
 */
const written = [
  ...["spool", "moving", "crawler", "control.sock"],
  ...["membership.json", "identity.json", "moved.json"],
  ...[
    "day-count.json",
    "host-paces.json",
    "robots-rules.json",
    "status.json",
    "paused.json",
    "draining.json",
  ],
] as const;

/**
 * What the system reveals of load, battery and users, for a host who wants the crawler to give way to them. Not all
 * of /proc: other processes' environments are there, the dock's among them.
 */
const systemFacts = [
  ...["/proc/loadavg", "/proc/self/task"],
  ...["/sys/class/power_supply/", "/sys/devices/"],
  ...["/run/utmp", "/var/run/utmp", "/dev/pts/", "/dev/tty1", "/dev/tty2"],
];

/** Neither secret nor of any power; the time zone is what the hours of a partner's schedule are in. */
const passedOn = ["TZ", "LANG", "LC_ALL", "NODE_EXTRA_CA_CERTS"] as const;

/** `nodeFlags`: what this Node knows, `process.allowedNodeEnvironmentFlags`. Throws a ConfigError for a path that cannot be stated. */
export function childCommand(
  place: ChildPlace,
  { env, nodeFlags }: { readonly env: NodeJS.ProcessEnv; readonly nodeFlags: ReadonlySet<string> },
): ChildCommand {
  const { bundle, home, readable, writable } = place;
  const own = written.map((name) => `${asFolder(home)}${name}`);
  const folders = disjoint(writable.map(asFolder)).filter(
    (path) => !own.some((name) => path.startsWith(name)),
  );
  const args = [
    "--no-warnings",
    oneHelper,
    ...permissionFlags(nodeFlags),
    ...disjoint([bundle, asFolder(home), ...folders, ...systemFacts, ...readable]).map(
      (path) => `--allow-fs-read=${statable(path)}`,
    ),
    ...own.map((name) => `--allow-fs-write=${statable(name)}*`),
    ...folders.map((path) => `--allow-fs-write=${statable(path)}`),
    bundle,
    home,
    "--dock",
  ];
  const kept = passedOn.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
  return { args, env: Object.fromEntries(kept) };
}

/** Of V8's threads for collecting and compiling Node starts four, which cost more in waiting for each other than they spare. */
export const oneHelper = "--v8-pool-size=1";

/** Node 20: experimental; from 22.13 on: stable; from 25 on the network is a permission, too. */
function permissionFlags(nodeFlags: ReadonlySet<string>): string[] {
  const model = nodeFlags.has("--permission") ? "--permission" : "--experimental-permission";
  return [model, "--allow-worker", ...(nodeFlags.has("--allow-net") ? ["--allow-net"] : [])];
}

/** With the slash at its end, it means everything below. */
const asFolder = (path: string) => (path.endsWith("/") ? path : `${path}/`);

/** Node (20 to 26) errs when one of the paths lies below another: what is stated would be denied then. */
function disjoint(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => other !== path && path.startsWith(asFolder(other))));
}

/** Node 20 splits the list at commas, and all versions read `*` as anything. */
function statable(path: string): string {
  if (!/[,*]/.test(path)) return path;
  throw new ConfigError([`${path}: a path with "," or "*" cannot be given to the crawler; choose another`]);
}
