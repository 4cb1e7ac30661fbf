/**
 * Starts the registry's jobs, follows their processes, and writes down how far they are and how they ended. A job's
 * end may be asked for at any coordinator: the one that runs it sees so with its next note, a second later.
 *
 *   start ──► running ──► done | failed
 *                ├─────► cancelled     somebody asked for its end
 *                └─────► broken-off    the coordinator stopped, or lost the database
 */
import type { Log } from "#core/log";
import type { ToldOf } from "../../web/api-operation.ts";
import type { registryFilesPlace, registryJob, registryJobProgress, registryOrder } from "./job-api.ts";

interface RegistryJobsPorts {
  readonly store: RegistryJobStore;
  readonly commands: RegistryCommands;
  readonly log: Log;
  readonly now: () => Date;
  readonly noteMs?: number;
}

const usualNoteMs = 1000;
const mostLines = 60;
const mostCharacters = 400;
const emptyProgress: JobProgress = { text: "starting", share: null, lines: [] };

export class RegistryJobs {
  readonly #ports: RegistryJobsPorts;
  #followed: FollowedJob | null = null;
  #stopped = false;

  constructor(ports: RegistryJobsPorts) {
    this.#ports = ports;
  }

  /** `running`: not started because this one runs. */
  async start(
    order: RegistryOrder,
    asker: Asker,
  ): Promise<{ readonly jobId: number } | { readonly running: RegistryJob }> {
    const { store, now } = this.#ports;
    const begun = await store.begin(order, asker, now());
    if ("running" in begun) return begun;
    const job = new FollowedJob(this.#ports, begun.held, { order, asker });
    this.#followed = job;
    job.ended.finally(() => {
      if (this.#followed === job) this.#followed = null;
    });
    if (this.#stopped) job.breakOff();
    return { jobId: begun.held.jobId };
  }

  /** Aborts the job that runs here; resolves when that is recorded. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#followed?.breakOff();
    await this.#followed?.ended;
    await this.#ports.store.close();
  }
}

class FollowedJob {
  readonly ended: Promise<void>;
  readonly #ports: RegistryJobsPorts;
  readonly #held: HeldJob;
  readonly #command: RunningCommand;
  readonly #timer: NodeJS.Timeout;
  #progress = emptyProgress;
  #noted: Promise<void> | null = null;
  #cancelAskedBy: string | null = null;
  #brokenOff: string | null = null;

  constructor(
    ports: RegistryJobsPorts,
    held: HeldJob,
    { order, asker }: { readonly order: RegistryOrder; readonly asker: Asker },
  ) {
    this.#ports = ports;
    this.#held = held;
    ports.log.info({ jobId: held.jobId, kind: order.type, by: asker.by }, "registry job started");
    this.#command = ports.commands.start(order, asker, (step) => this.#take(step));
    this.#timer = setInterval(() => void this.#note(), ports.noteMs ?? usualNoteMs);
    this.ended = this.#command.ended.then((end) => this.#end(end));
  }

  breakOff(why = "the coordinator was stopped"): void {
    if (this.#brokenOff !== null) return;
    this.#brokenOff = why;
    this.#command.stop();
  }

  #take({ text, share, done }: JobStep): void {
    const { lines } = this.#progress;
    const kept = done === null ? lines : [...lines, done.slice(0, mostCharacters)].slice(-mostLines);
    this.#progress = { text: text.slice(0, mostCharacters), share, lines: kept };
  }

  async #note(): Promise<void> {
    this.#noted ??= this.#writeNote().finally(() => {
      this.#noted = null;
    });
    await this.#noted;
  }

  async #writeNote(): Promise<void> {
    try {
      const by = await this.#held.note(this.#progress, this.#ports.now());
      if (by === null || this.#cancelAskedBy !== null) return;
      this.#cancelAskedBy = by;
      this.#command.stop();
    } catch (error) {
      this.#ports.log.warn({ error, jobId: this.#held.jobId }, "registry job lost its place; it is stopped");
      this.breakOff("the connection to the database was lost");
    }
  }

  async #end(end: CommandEnd): Promise<void> {
    clearInterval(this.#timer);
    await this.#noted;
    await this.#note();
    const { log, now } = this.#ports;
    const { jobId } = this.#held;
    const ended = this.#judge(end);
    try {
      await this.#held.end(ended, now());
      log.info({ jobId, state: ended.state, exitCode: ended.exitCode }, "registry job ended");
    } catch (error) {
      log.error({ error, jobId, state: ended.state }, "the end of a registry job could not be written down");
    }
  }

  /** Work that was finished before the requested end counts as done. */
  #judge({ exitCode, words, result }: CommandEnd): JobEnd {
    if (exitCode === 0) return { state: "done", exitCode, words: null, result };
    if (this.#cancelAskedBy !== null) {
      return { state: "cancelled", exitCode, words: `cancelled by ${this.#cancelAskedBy}`, result: null };
    }
    if (this.#brokenOff !== null) {
      return { state: "broken-off", exitCode, words: this.#brokenOff, result: null };
    }
    return { state: "failed", exitCode, words: words || "it ended without a word", result };
  }
}

// Registry work on request: fetch the registries' files, plan an import, apply a plan, roll back or forward. It runs in a
// process beside the coordinator, one at a time across all coordinators.

export type FilesPlace = ToldOf<typeof registryFilesPlace>;
export type RegistryOrder = ToldOf<typeof registryOrder>;
export type JobProgress = ToldOf<typeof registryJobProgress>;

export interface Asker {
  readonly by: string;
  readonly via: "page" | "api";
}

export type RegistryJob = ToldOf<typeof registryJob> & { readonly askedBy: string };

/** `result` is the JSON that the command printed, or null. */
export interface RegistryJobWithResult extends RegistryJob {
  readonly result: unknown;
}

export interface JobEnd {
  readonly state: Exclude<RegistryJob["state"], "running">;
  readonly exitCode: number | null;
  readonly words: string | null;
  readonly result: unknown;
}

/** A job of this coordinator, which holds the lock until the job or the coordinator ends. */
export interface HeldJob {
  readonly jobId: number;
  /** Returns who has requested its end, or null. Rejects when the lock is lost with its connection. */
  note(progress: JobProgress, now: Date): Promise<string | null>;
  end(end: JobEnd, now: Date): Promise<void>;
}

export interface RegistryJobStore {
  /** Returns the running job when there is one. Closes aborted jobs on the way. */
  begin(
    order: RegistryOrder,
    asker: Asker,
    now: Date,
  ): Promise<{ readonly held: HeldJob } | { readonly running: RegistryJob }>;
  list(limit: number): Promise<readonly RegistryJob[]>;
  find(jobId: number): Promise<RegistryJobWithResult | null>;
  /** Returns false when it does not run. */
  askCancel(jobId: number, by: string): Promise<boolean>;
  close(): Promise<void>;
}

export interface JobStep {
  readonly text: string;
  readonly share: number | null;
  /** A finished step to record; null when there is no new one. */
  readonly done: string | null;
}

export interface CommandEnd {
  /** Null when a signal ended it or it never started. */
  readonly exitCode: number | null;
  /** Its last output, possibly empty. */
  readonly words: string;
  readonly result: unknown;
}

export interface RunningCommand {
  readonly ended: Promise<CommandEnd>;
  /** Asks it to end and kills it after some seconds. */
  stop(): void;
}

export interface RegistryCommands {
  /** `asker` is the name in the audit log. */
  start(order: RegistryOrder, asker: Asker, onStep: (step: JobStep) => void): RunningCommand;
}

// The order in words, for pages, the audit log and the command.

export function orderWords(order: RegistryOrder): string {
  switch (order.type) {
    case "fetch":
      return order.acceptSmaller ? "Fetch, much smaller files too" : "Fetch";
    case "plan":
      return `Plan ${placeWords(order.files)}`;
    case "apply":
      return `Apply plan ${order.planId}`;
    case "rollback":
      return `Roll back generation ${order.generation}${order.toEmpty ? ", to an empty tree" : ""}`;
    case "rollforward":
      return `Put generation ${order.generation} in force again`;
  }
}

function placeWords(files: FilesPlace): string {
  if (files.from === "cache") return "what was fetched";
  return files.name === "" ? "the folder of files" : `the folder ${files.name}`;
}
