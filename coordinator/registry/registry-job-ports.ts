/**
 * Work on the registry that people ask for: fetch the registries' files, plan an import, apply a plan, roll one back or forward.
 * It runs in a process of its own beside the coordinator; one at a time, however many coordinators there are.
 */

export const registryJobKinds = ["fetch", "plan", "apply", "rollback", "rollforward"] as const;
export type RegistryJobKind = (typeof registryJobKinds)[number];

/** `folder`: below the folder of files that the settings allow; an empty name is that folder itself. */
export type FilesPlace = { readonly from: "cache" } | { readonly from: "folder"; readonly name: string };

export type RegistryOrder =
  | { readonly type: "fetch"; readonly acceptSmaller: boolean }
  | { readonly type: "plan"; readonly files: FilesPlace }
  /** `fingerprint`: the plan's; files or a tree that changed since stop the job. */
  | {
      readonly type: "apply";
      readonly planId: number;
      readonly fingerprint: string;
      readonly files: FilesPlace;
    }
  /** Stops when another generation is in force by then. */
  | { readonly type: "rollback"; readonly generation: number; readonly toEmpty: boolean }
  /** Stops when another generation is in force by then than the one that it follows. */
  | { readonly type: "rollforward"; readonly generation: number };

export const registryJobStates = ["running", "done", "failed", "cancelled", "broken-off"] as const;
export type RegistryJobState = (typeof registryJobStates)[number];

export interface JobProgress {
  /** How far, how fast, how long still: "reading 43 % · 120,000 records · 51,000/s · 12 s left". */
  readonly text: string;
  /** 0 to 1 of the present step; null: not known. */
  readonly share: number | null;
  /** Steps that lie behind it, the first one first; bounded. */
  readonly lines: readonly string[];
}

export interface Asker {
  readonly by: string;
  readonly via: "page" | "api";
}

export interface RegistryJob {
  readonly jobId: number;
  readonly order: RegistryOrder;
  readonly askedBy: string;
  readonly via: Asker["via"];
  readonly state: RegistryJobState;
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly progress: JobProgress;
  readonly cancelAskedBy: string | null;
  readonly exitCode: number | null;
  /** Why it failed, or what else is to be known of its end. */
  readonly words: string | null;
}

/** `result`: the JSON that the command printed; its form is that of the command. Null: none. */
export interface RegistryJobWithResult extends RegistryJob {
  readonly result: unknown;
}

export interface JobEnd {
  readonly state: Exclude<RegistryJobState, "running">;
  readonly exitCode: number | null;
  readonly words: string | null;
  readonly result: unknown;
}

/** A job of this coordinator: it holds the lock until it ends, or until the coordinator does. */
export interface HeldJob {
  readonly jobId: number;
  /** Answers who has asked for its end since, or null. Rejects when the lock is lost with its connection. */
  note(progress: JobProgress, now: Date): Promise<string | null>;
  end(end: JobEnd, now: Date): Promise<void>;
}

export interface RegistryJobStore {
  /** The job that runs already, when there is one. Jobs that were broken off are closed on the way. */
  begin(
    order: RegistryOrder,
    asker: Asker,
    now: Date,
  ): Promise<{ readonly held: HeldJob } | { readonly running: RegistryJob }>;
  /** The latest first. */
  list(limit: number): Promise<readonly RegistryJob[]>;
  find(jobId: number): Promise<RegistryJobWithResult | null>;
  /** False: it does not run. */
  askCancel(jobId: number, by: string): Promise<boolean>;
  close(): Promise<void>;
}

/** One piece of news from the process. */
export interface JobStep {
  readonly text: string;
  readonly share: number | null;
  /** A line to keep, of what is behind it; null: nothing new is. */
  readonly done: string | null;
}

export interface CommandEnd {
  /** Null: ended by a signal, or never started. */
  readonly exitCode: number | null;
  /** Its last words; empty when it had none. */
  readonly words: string;
  readonly result: unknown;
}

export interface RunningCommand {
  readonly ended: Promise<CommandEnd>;
  /** Asks it to end, and makes it after some seconds. */
  stop(): void;
}

export interface RegistryCommands {
  /** `asker`: in whose name the audit log gets what it changes. */
  start(order: RegistryOrder, asker: Asker, onStep: (step: JobStep) => void): RunningCommand;
}
