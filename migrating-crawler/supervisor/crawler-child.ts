/**
 * Runs one crawler process from start to end: passes on its lines, checks its messages, notices its silence and explains its
 * end. The supervisor decides what follows.
 *
 *   starting → (healthy) → stopping → ended        it may also end by itself in any state
 */

import { type ChildProcess, spawn } from "node:child_process";
import { finished } from "node:stream/promises";
import { StringDecoder } from "node:string_decoder";
import { ConfigError } from "#core/errors";
import { timerMs } from "#core/timer-ms";
import {
  type CrawlerToSupervisor,
  crawlerToSupervisor,
  type SupervisorMessage,
} from "../core/supervisor-messages.ts";
import { systemEchoes } from "../probe/icmp-echo.ts";

export interface ChildEnd {
  readonly words: string;
  /** True if the supervisor asked for the end, or the exit code was 0. */
  readonly inOrder: boolean;
  /**
   * True if something external ended it (a signal, the kernel for lack of memory, a full disk), which says nothing about the
   * release.
   */
  readonly isFromOutside: boolean;
  readonly refused: { readonly reason: string; readonly isRemoved: boolean } | null;
  readonly livedMs: number;
}

interface ChildSettings {
  readonly command: ChildCommand;
  readonly onMessage: (message: CrawlerToSupervisor) => void;
  readonly onLine: (line: string) => void;
  readonly onEnd: (end: ChildEnd) => void;
  /** A process that gives no sign of life for this long is stuck and is killed. */
  readonly silenceMs: number;
  readonly stopMs: number;
}

/** Signs of life are checked this many times within `silenceMs`, so that a machine that slept for an hour misses only one. */
const looksPerSilence = 4;

/** Output is read for this long after the end, if no other process has the pipes open. */
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

  get pid(): number | undefined {
    return this.#process.pid;
  }

  send(message: SupervisorMessage): boolean {
    if (!this.#process.connected) return false;
    this.#process.send(message, () => {});
    return true;
  }

  /** Kills the process if stopping takes too long. Resolves when it has gone. */
  async stop(): Promise<void> {
    this.#asked = true;
    this.send({ type: "stop" });
    const late = setTimeout(() => {
      this.end(`it did not stop within ${this.#settings.stopMs / 1000} s and was ended`);
    }, this.#settings.stopMs);
    await this.ended;
    clearTimeout(late);
  }

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
    // Does not use `close`, which is not emitted if the child closed the IPC channel.
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

  async #readOut(): Promise<void> {
    const pipes = [this.#process.stdout, this.#process.stderr].filter((pipe) => pipe !== null);
    const signal = AbortSignal.timeout(readOutMs);
    await Promise.all(pipes.map((pipe) => finished(pipe, { signal }).catch(() => {})));
  }

  /** The process could not start, or ended before it received a message. */
  #onProcessError(error: Error): void {
    if (this.#process.pid === undefined)
      this.#end(`it could not be started: ${error.message}`, { isWell: false, isFromOutside: true });
  }

  #take(message: unknown): void {
    const { data } = crawlerToSupervisor.safeParse(message);
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

// Summarises a process's last output and how it ended, for the log, the next process and the coordinator.

const mostLines = 20;

const mostLineCharacters = 300;

const mostReasonCharacters = 500;

class LastWords {
  #lines: string[] = [];

  add(line: string): void {
    const text = line.trim();
    if (text === "") return;
    this.#lines.push(text.slice(0, mostLineCharacters));
    if (this.#lines.length > mostLines) this.#lines.shift();
  }

  reason(end: string): string {
    const said = this.#lines.filter(isTelling).join(" | ");
    if (said === "") return end.slice(0, mostReasonCharacters);
    const room = mostReasonCharacters - end.length - 2;
    return room < 20 ? end.slice(0, mostReasonCharacters) : `${end}: ${said.slice(-room)}`;
  }
}

/**
 * Signals by which a process ends itself, as V8 does when its heap is full. All others are sent by people, the system or the
 * kernel.
 */
const ownSignals: ReadonlySet<string> = new Set([
  ...["SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"],
]);

/** System error codes that mean a lack of disk, memory, descriptors or processes. */
const wantOfRoom = /\b(ENOSPC|EDQUOT|EROFS|EIO|ENOMEM|EMFILE|ENFILE|EAGAIN)\b/;

/** Positions inside the bundle help nobody who reads the report. */
const isTelling = (line: string) => !/^(at |\^|node:internal|file:\/\/|Node\.js v)/.test(line);

// Builds the command that starts a crawler. Node's permission model lets it read its bundle and home, write its own files
// there and start threads, but neither start processes nor load native code. The environment has only the few names below. The
// model prevents mistakes, not hostile code (as Node's documentation says): signatures decide what may run, and the
// supervisor's user, unit or container limits what it can reach.

interface ChildPlace {
  readonly bundle: string;
  /** A real path, like the ones below, because links that lead out of it are not followed. */
  readonly home: string;
  readonly readable: readonly string[];
  /** Other readable and writable folders, for WARC files. */
  readonly writable: readonly string[];
}

interface ChildCommand {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The prefixes of files that the crawler writes in its home. A file's draft is beside it (`status.json.new`). Everything else
 * there is read-only for the crawler: the supervisor's files (releases/, settings.toml, dock.pid) and its log. `crawler` is
 * for files of later releases, which may be newer than the supervisor.
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
 * Files that show load, battery and users, so that the crawler can yield to them. The rest of /proc stays hidden, because it
 * contains the environments of other processes, including the supervisor's.
 */
const systemFacts = [
  ...["/proc/loadavg", "/proc/self/task"],
  ...["/sys/class/power_supply/", "/sys/devices/"],
  ...["/run/utmp", "/var/run/utmp", "/dev/pts/", "/dev/tty1", "/dev/tty2"],
];

/** These variables are neither secret nor powerful. The partner's schedule uses the time zone. */
const passedOn = ["TZ", "LANG", "LC_ALL", "NODE_EXTRA_CA_CERTS"] as const;

/** `nodeFlags` is `process.allowedNodeEnvironmentFlags`. Throws a ConfigError for a path that cannot be expressed. */
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

/** Node starts four V8 helper threads by default, which cost more by waiting for each other than they save. */
export const oneHelper = "--v8-pool-size=1";

/** The model is experimental in Node 20, stable from 22.13 on, and includes network access from 25 on. */
function permissionFlags(nodeFlags: ReadonlySet<string>): string[] {
  const model = nodeFlags.has("--permission") ? "--permission" : "--experimental-permission";
  return [model, "--allow-worker", ...(nodeFlags.has("--allow-net") ? ["--allow-net"] : [])];
}

const asFolder = (path: string) => (path.endsWith("/") ? path : `${path}/`);

/** Node (20 to 26) wrongly denies access if one path contains another. */
function disjoint(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => other !== path && path.startsWith(asFolder(other))));
}

/** Node 20 splits the list at commas, and all versions treat `*` as a wildcard. */
function statable(path: string): string {
  if (!/[,*]/.test(path)) return path;
  throw new ConfigError([`${path}: a path with "," or "*" cannot be given to the crawler; choose another`]);
}

// Runs the system's `ping` for the crawler, which may not start processes: a few at a time, to addresses only.

type PingRequest = Extract<CrawlerToSupervisor, { type: "ping" }>;

/** A coordinator asks a crawler for 8 probes at a time. */
const mostAtOnce = 8;

export class PingService {
  readonly #echoes = systemEchoes();
  #mayPing = false;
  #running = 0;

  /** Tests on loopback whether `ping` works on this machine. */
  async start(): Promise<void> {
    this.#mayPing = await this.#echoes.canPing();
  }

  get mayPing(): boolean {
    return this.#mayPing;
  }

  async ping({ address, tries, deadlineMs }: PingRequest): Promise<number[]> {
    if (!this.#mayPing || this.#running >= mostAtOnce) return [];
    this.#running += 1;
    try {
      return await this.#echoes.timeEchoes({ address, tries, deadlineMs });
    } finally {
      this.#running -= 1;
    }
  }
}
