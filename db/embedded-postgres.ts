/**
 * Starts the embedded Postgres of a home, or attaches to the one that is running, and stops it.
 *
 *   silent ──start──► busy (recovering) ──► without the database ──create──► ready
 *
 * Several processes may do any step at once, and any of them may be killed in between: each checks the state, does the
 * next step, and checks again. Postgres itself ensures that at most one server runs on a data folder. The server is a
 * daemon: it outlives us, and the next start attaches to it.
 */

import { execFile, spawn } from "node:child_process";
import {
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { Client } from "pg";
import { DatabaseError } from "#core/errors";
import { isRunning } from "#core/running-process";
import { accountOf, findPrograms, programEnvironment, runProgram } from "./embedded-binaries.ts";
import {
  type Cluster,
  dataFolderOf,
  embeddedName,
  logFileOf,
  makeHome,
  type PrepareOptions,
  prepareCluster,
} from "./embedded-cluster.ts";
import { wordsOf } from "./server-database.ts";
import {
  closedWords,
  emptyLock,
  lastingFailure,
  passingFailure,
  recoveringWords,
  timeoutWords,
} from "./server-words.ts";

export interface EmbeddedServer {
  readonly home: string;
  readonly url: string;
  readonly started: boolean;
}

/** Names connections that only check whether the server answers. They end immediately and do not count as users. */
export const passingVisitor = "nearcrawl looks";

/** Recovery after a crash takes time, but no command waits for it longer than this. */
const startDeadlineMs = 120_000;

const lookAgainMs = 50;

/** A starting server writes its process id into the file within this time. */
const pidFileFilledMs = 500;

interface StartOptions extends PrepareOptions {
  /** Default: the limit for recovery after a crash. Replaying a backup's log may take longer. */
  readonly withinMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Returns the home's server after starting it if necessary. Throws DatabaseError with the end of the server's log. */
export async function startEmbeddedPostgres(
  homeFolder: string,
  { withinMs = startDeadlineMs, signal, ...preparing }: StartOptions = {},
): Promise<EmbeddedServer> {
  const home = makeHome(homeFolder);
  const deadline = performance.now() + withinMs;
  let started = false;
  let lastFailure = "";
  const recovery = new RecoveryWatch(home);
  while (performance.now() < deadline) {
    signal?.throwIfAborted();
    const state = await look(home);
    await recovery.note(state);
    if (state.type === "ready") return { home, url: socketUrl(state.socketFolder, embeddedName), started };
    if (state.type === "without-database") await createDatabase(state.socketFolder);
    else if (state.type === "silent" && !serverIsAlive(home)) {
      lastFailure = await start(await prepareCluster(home, preparing), deadline, signal);
      started ||= lastFailure === "";
    } else await delay(lookAgainMs);
  }
  throw new DatabaseError(
    `the embedded Postgres in ${home} did not become ready within ${withinMs / 1000} s: ${lastFailure} ${await logSince(home, 0)}`,
  );
}

/** Stops the home's server despite open connections. Returns false when none was running. */
export async function stopEmbeddedPostgres(homeFolder: string): Promise<boolean> {
  if (!existsSync(homeFolder)) return false;
  const home = realpathSync(homeFolder);
  if (!serverIsAlive(home)) return false;
  const account = accountOf(dataFolderOf(home));
  const { pgCtl } = await findPrograms(home, account);
  const run = await runProgram(
    pgCtl,
    ["stop", "-D", dataFolderOf(home), "-m", "fast", "-w", "-t", "60"],
    account,
  );
  if (run.exitCode === 0 || !serverIsAlive(home)) return true;
  throw new DatabaseError(`the embedded Postgres in ${home} does not stop: ${run.output}`);
}

type ServerState =
  | { readonly type: "silent" | "busy" | "recovering" }
  | { readonly type: "ready" | "without-database"; readonly socketFolder: string };

async function look(home: string): Promise<ServerState> {
  const socketFolder = readPidFile(home)?.socketFolder;
  if (!socketFolder) return { type: "silent" };
  const client = new Client({
    connectionString: socketUrl(socketFolder, embeddedName),
    connectionTimeoutMillis: 5_000,
    application_name: passingVisitor,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return { type: "ready", socketFolder };
  } catch (error) {
    return stateOf(error, socketFolder);
  } finally {
    await client.end().catch(() => {});
  }
}

function stateOf(error: unknown, socketFolder: string): ServerState {
  const code = (error as { code?: unknown }).code;
  if (code === "3D000") return { type: "without-database", socketFolder };
  if (code === "53300") return { type: "ready", socketFolder }; // Too many clients means that the server runs.
  if (code === "57P03") return { type: recoveringWords.test(wordsOf(error)) ? "recovering" : "busy" };
  if (code === "ECONNRESET" || code === "EPIPE") return { type: "busy" };
  if (code === "ENOENT" || code === "ECONNREFUSED" || code === "ENOTSOCK") return { type: "silent" };
  if (timeoutWords.test(wordsOf(error)) || closedWords.test(wordsOf(error))) return { type: "busy" };
  throw new DatabaseError(`the embedded Postgres at ${socketFolder} refuses us: ${wordsOf(error)}`, {
    cause: error,
  });
}

/**
 * A startup process that ends for lack of disk space for its log may go unnoticed by the postmaster (of Postgres 18),
 * which then answers "not yet accepting connections" forever. Such a server is ended as by a power cut, and the next
 * start recovers it.
 */
export class RecoveryWatch {
  readonly #home: string;
  readonly #everyMs: number;
  #lookedAtMs: number | null = null;
  #isAlone = false;

  constructor(home: string, everyMs = recoveryLookMs) {
    this.#home = home;
    this.#everyMs = everyMs;
  }

  async note(state: Pick<ServerState, "type">): Promise<void> {
    if (state.type !== "recovering") {
      this.#lookedAtMs = null;
      this.#isAlone = false;
      return;
    }
    const nowMs = performance.now();
    this.#lookedAtMs ??= nowMs;
    if (nowMs - this.#lookedAtMs < this.#everyMs) return;
    this.#lookedAtMs = nowMs;
    const pid = readPidFile(this.#home)?.pid;
    if (pid === undefined || !serverIsAlive(this.#home)) return;
    // Checks twice, because the process may have just finished its work.
    const wasAlone = this.#isAlone;
    this.#isAlone = !(await recovers(pid));
    if (!wasAlone || !this.#isAlone) return;
    try {
      process.kill(pid, "SIGQUIT");
    } catch {
      // The process has just ended or belongs to another user. The next check shows which.
    }
  }
}

const recoveryLookMs = 1000;

/** Whether the postmaster has a startup process, which replays the log. Returns true where this cannot be determined. */
export async function recovers(postmasterPid: number): Promise<boolean> {
  const commands = await commandsOfChildren(postmasterPid);
  return commands === null || commands.some((command) => /^postgres:.* startup\b/.test(command));
}

/** Uses /proc, since small containers lack ps. Where there is no /proc, uses ps. */
async function commandsOfChildren(pid: number): Promise<readonly string[] | null> {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return (children.match(/\d+/g) ?? []).map((child) => readFileSync(`/proc/${child}/cmdline`, "utf8"));
  } catch {
    const processes = await promisify(execFile)("ps", ["-A", "-o", "ppid=,args="]).catch(() => null);
    const mine = new RegExp(`^ *${pid} (.*)$`, "gm");
    return processes && [...processes.stdout.matchAll(mine)].map(([, command]) => command ?? "");
  }
}

/**
 * Starts the server and waits until it answers. Returns "" or the reason when another check makes sense. Does not use
 * `pg_ctl start`, which passes paths to a shell in double quotes and so breaks on `$` or quotes. The server is detached
 * (setsid), so that it outlives us.
 */
async function start(
  { dataFolder, logFile, account, programs }: Cluster,
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  const home = dirname(dataFolder);
  removeForeignPidFile(home);
  await endOrphans(dataFolder);
  const before = lstatSync(logFile).size;
  // The account opens its log itself, and the shell then becomes the server (exec).
  const server = spawn(
    "/bin/sh",
    ["-c", 'exec "$1" -D "$2" >>"$3" 2>&1', "sh", programs.postgres, dataFolder, logFile],
    {
      detached: true,
      stdio: "ignore",
      ...programEnvironment,
      ...account,
    },
  );
  server.unref();
  const over = new AbortController();
  const asked = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
  const failure = new Promise<string>((resolve) => {
    server.once("error", (error) => resolve(error.message));
    server.once("exit", (code, signal) => resolve(`it ended with ${signal ?? `exit code ${code}`}`));
  });
  const ended = await Promise.race([failure, answered(home, server.pid, deadline, asked)]);
  over.abort();
  if (ended === "") return "";
  const said = `${ended}: ${await logSince(home, before)}`;
  // Another process started its server first, whatever that has logged since.
  if (serverIsAlive(home) && readPidFile(home)?.pid !== server.pid) return said;
  await refuseEmptyLock(said, dataFolder);
  if (passingFailure.test(said) && !lastingFailure.test(said)) return said;
  throw new DatabaseError(`the embedded Postgres in ${home} does not start: ${said}`);
}

/**
 * A lock file that a full disk or power cut left empty names no process. Postgres would forever take it for the file of
 * a starting server, which normally fills it within milliseconds.
 */
async function refuseEmptyLock(said: string, dataFolder: string): Promise<void> {
  const [, name] = emptyLock.exec(said) ?? [];
  if (name === undefined) return;
  const file = resolve(dataFolder, name);
  await delay(pidFileFilledMs);
  if (statSync(file, { throwIfNoEntry: false })?.size !== 0) return;
  const advice = `if no Postgres serves ${dataFolder}, delete it and start again`;
  throw new DatabaseError(
    `${file} is empty, as a full disk or a power cut leaves it, and the embedded Postgres does not start: ${advice}`,
  );
}

async function answered(
  home: string,
  pid: number | undefined,
  deadline: number,
  over: AbortSignal,
): Promise<string> {
  const recovery = new RecoveryWatch(home);
  while (!over.aborted && performance.now() < deadline) {
    await delay(lookAgainMs);
    if (readPidFile(home)?.pid !== pid) continue;
    const state = await look(home).catch(() => null);
    if (state !== null) await recovery.note(state);
    if (state?.type === "ready" || state?.type === "without-database") return "";
  }
  return "";
}

async function createDatabase(socketFolder: string): Promise<void> {
  const client = new Client({ connectionString: socketUrl(socketFolder, "postgres") });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query(`create database ${embeddedName}`);
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === "42P04" || code === "23505" || code === "55006") return; // Another process did it or is doing it.
    throw new DatabaseError(`the database ${embeddedName} cannot be created: ${wordsOf(error)}`, {
      cause: error,
    });
  } finally {
    await client.end().catch(() => {});
  }
}

/** Names every part, so that PGPORT or PGSSLMODE in the environment cannot select another server. */
function socketUrl(socketFolder: string, database: string): string {
  const host = encodeURIComponent(socketFolder);
  return `postgresql:///${database}?host=${host}&port=5432&user=${embeddedName}&sslmode=disable`;
}

export async function logSince(home: string, bytes: number): Promise<string> {
  const file = logFileOf(home);
  if (!existsSync(file)) return "";
  // Others are shown what root reads here, so links are not followed.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size, uid } = await handle.stat();
    if (uid !== lstatSync(dataFolderOf(home)).uid) return "";
    const from = Math.max(bytes, size - 2000);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.max(0, size - from)), 0, null, from);
    return buffer.subarray(0, bytesRead).toString("utf8").trim();
  } finally {
    await handle.close();
  }
}

// postmaster.pid names the process that serves the data folder and its socket. A clean stop removes the file, while a
// crash leaves it behind.

/** Returns null if there is no file. `socketFolder` is missing while the server is starting. */
export function readPidFile(home: string): { pid: number; socketFolder: string | undefined } | null {
  try {
    const lines = readFileSync(pidFileOf(home), "utf8").split("\n");
    const pid = Number(lines[0]);
    return Number.isInteger(pid) && pid > 0 ? { pid, socketFolder: lines[4]?.trim() } : null;
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new DatabaseError(`${pidFileOf(home)} cannot be read: ${wordsOf(error)}`, { cause: error });
  }
}

/** True when the process in the pid file is alive and is this folder's server. */
export function serverIsAlive(home: string): boolean {
  const pid = readPidFile(home)?.pid;
  return pid !== undefined && isRunning(pid) && serves(pid, dataFolderOf(home));
}

/** Returns null when no server is running. Neither contacts nor starts a server. */
export function runningServerUrl(homeFolder: string): string | null {
  if (!existsSync(homeFolder)) return null;
  const home = realpathSync(homeFolder);
  const { socketFolder = null } = readPidFile(home) ?? {};
  return socketFolder === null || !serverIsAlive(home) ? null : socketUrl(socketFolder, embeddedName);
}

/** True after a crash: the server is gone but left its pid file. */
export function serverCrashed(home: string): boolean {
  return existsSync(pidFileOf(home)) && !serverIsAlive(home);
}

/**
 * Postgres takes any live process of its account with that id for a running server and refuses to start. Process ids
 * are reused, quickly in containers. Call only when the socket does not answer.
 */
function removeForeignPidFile(home: string): void {
  const pid = readPidFile(home)?.pid;
  if (pid !== undefined && isRunning(pid) && !serverIsAlive(home)) rmSync(pidFileOf(home), { force: true });
}

/** A server that no longer saves anything ends within this time. */
const orphanMs = 10_000;

/**
 * A server whose data folder was removed runs for up to a minute, until it checks its lock file. When it ends it
 * removes its socket by path, and by that time the path may belong to the server being started.
 */
async function endOrphans(dataFolder: string): Promise<void> {
  for (const name of existsSync("/proc") ? readdirSync("/proc") : []) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || !serves(pid, dataFolder)) continue;
    try {
      if (readlinkSync(`/proc/${pid}/cwd`) !== `${dataFolder} (deleted)`) continue;
      process.kill(pid, "SIGQUIT");
    } catch {
      continue; // It has just ended or belongs to somebody else.
    }
    const deadline = performance.now() + orphanMs;
    while (isRunning(pid) && performance.now() < deadline) await delay(lookAgainMs);
  }
}

/** A server's command line names its data folder. Where there is no /proc, any live process counts as the server. */
function serves(pid: number, dataFolder: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(dataFolder);
  } catch {
    return isRunning(pid);
  }
}

function pidFileOf(home: string): string {
  return join(dataFolderOf(home), "postmaster.pid");
}
