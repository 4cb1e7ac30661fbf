/**
 * Starts the registry's jobs (fetch the registries' files, plan an import, apply a plan, roll back or forward), each
 * in a process of its own, and records their progress and end. Any coordinator may request the end of a job. The
 * coordinator that runs it learns of the request when it next records progress, a second later.
 *
 *   start ──► running ──► done | failed
 *                ├─────► cancelled     somebody requested its end
 *                └─────► broken-off    the coordinator stopped, or lost the database
 */
import type { Log } from "#core/log";
import type { Asker, HeldJob, JobEnd, RegistryJob, RegistryJobStore } from "./job-store.ts";

export type RegistryOrder = RegistryJob["order"];
export type FilesPlace = Extract<RegistryOrder, { type: "plan" }>["files"];

interface RegistryJobsPorts {
  readonly store: Pick<RegistryJobStore, "begin" | "close">;
  readonly commands: RegistryCommands;
  readonly log: Log;
  readonly now: () => Date;
  readonly noteMs?: number;
}

export interface RegistryCommands {
  /** `asker` is the name for the audit log. */
  start(order: RegistryOrder, asker: Asker, onStep: (step: JobStep) => void): RunningCommand;
}

export interface JobStep {
  readonly text: string;
  readonly share: number | null;
  /** The step to record as finished; null if there is no new one. */
  readonly done: string | null;
}

export interface RunningCommand {
  readonly ended: Promise<CommandEnd>;
  /** Asks the command to end, and kills it after some seconds. */
  stop(): void;
}

/** `exitCode` is null if a signal ended the command or it never started. `words` is its last output, possibly empty. */
export type CommandEnd = Omit<JobEnd, "state"> & { readonly words: string };

const usualNoteMs = 1000;
const mostLines = 60;
const mostCharacters = 400;

export class RegistryJobs {
  readonly #ports: RegistryJobsPorts;
  #followed: FollowedJob | null = null;
  #stopped = false;

  constructor(ports: RegistryJobsPorts) {
    this.#ports = ports;
  }

  /** Returns `running` with the job that runs if it prevented the start. */
  async start(
    order: RegistryOrder,
    asker: Asker,
  ): Promise<{ readonly jobId: number } | { readonly running: RegistryJob }> {
    const { store, now, log } = this.#ports;
    const begun = await store.begin(order, asker, now());
    if ("running" in begun) return begun;
    const { jobId } = begun.held;
    log.info({ jobId, kind: order.type, by: asker.by }, "registry job started");
    const job = new FollowedJob(this.#ports, begun.held, order, asker);
    this.#followed = job;
    job.ended.finally(() => {
      if (this.#followed === job) this.#followed = null;
    });
    if (this.#stopped) job.breakOff();
    return { jobId };
  }

  /** Breaks off the job that runs here. Resolves when that is recorded. */
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
  #progress: RegistryJob["progress"] = { text: "starting", share: null, lines: [] };
  #noted: Promise<void> | null = null;
  #cancelAskedBy: string | null = null;
  #brokenOff: string | null = null;

  constructor(ports: RegistryJobsPorts, held: HeldJob, order: RegistryOrder, asker: Asker) {
    this.#ports = ports;
    this.#held = held;
    this.#command = ports.commands.start(order, asker, ({ text, share, done }) => {
      const { lines } = this.#progress;
      const kept = done === null ? lines : [...lines, done.slice(0, mostCharacters)].slice(-mostLines);
      this.#progress = { text: text.slice(0, mostCharacters), share, lines: kept };
    });
    this.#timer = setInterval(() => void this.#note(), ports.noteMs ?? usualNoteMs);
    this.ended = this.#command.ended.then((end) => this.#end(end));
  }

  breakOff(why = "the coordinator was stopped"): void {
    if (this.#brokenOff !== null) return;
    this.#brokenOff = why;
    this.#command.stop();
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
    const ended = this.#judge(end);
    const facts = { jobId: this.#held.jobId, state: ended.state };
    try {
      await this.#held.end(ended, now());
      log.info({ ...facts, exitCode: ended.exitCode }, "registry job ended");
    } catch (error) {
      log.error({ ...facts, error }, "the end of a registry job could not be written down");
    }
  }

  /** Work finished before its end was requested counts as done. */
  #judge({ exitCode, words, result }: CommandEnd): JobEnd {
    if (exitCode === 0) return { state: "done", exitCode, words: null, result };
    if (this.#cancelAskedBy !== null)
      return { state: "cancelled", exitCode, words: `cancelled by ${this.#cancelAskedBy}`, result: null };
    if (this.#brokenOff !== null)
      return { state: "broken-off", exitCode, words: this.#brokenOff, result: null };
    return { state: "failed", exitCode, words: words || "it ended without a word", result };
  }
}

export function orderWords(order: RegistryOrder): string {
  switch (order.type) {
    case "fetch":
      return order.acceptSmaller ? "Fetch, much smaller files too" : "Fetch";
    case "plan": {
      const { files } = order;
      if (files.from === "cache") return "Plan what was fetched";
      return files.name === "" ? "Plan the folder of files" : `Plan the folder ${files.name}`;
    }
    case "apply":
      return `Apply plan ${order.planId}`;
    case "rollback":
      return `Roll back generation ${order.generation}${order.toEmpty ? ", to an empty tree" : ""}`;
    case "rollforward":
      return `Put generation ${order.generation} in force again`;
  }
}
