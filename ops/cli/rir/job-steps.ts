/**
 * Connects a `nearcrawl rir` command to the coordinator that started it (registry/run-command): progress goes over the IPC
 * channel, and a closed channel has the effect of SIGTERM. A command started by a person or timer has no channel, and its
 * progress is a line on standard error.
 */
import type { Pool } from "pg";
import { z } from "zod";
import { createAuditLog } from "#coordinator/database/audit-log";
import type { Asker } from "#coordinator/run/registry/job-store";
import type { JobStep } from "#coordinator/run/registry/jobs";
import type { Change } from "#core/audit";
import type { ImportProgress, OnProgress } from "#rir-import/check";
import { recordCommand } from "../audit-command-change.ts";
import { ProgressLine, secondsText } from "../output.ts";

/** The messages that the coordinator accepts. */
export const jobStep = z.object({
  text: z.string().max(2000),
  share: z.number().min(0).max(1).nullable(),
  done: z.string().max(2000).nullable(),
}) satisfies z.ZodType<JobStep>;

const stepMs = 200;
const mostCharacters = 400;

/** A coordinator sets this for its jobs, because a channel may also belong to a process manager or test runner. */
export const jobMark = { NEARCRAWL_JOB: "1" };

function isJob(): boolean {
  return process.send !== undefined && process.env.NEARCRAWL_JOB === jobMark.NEARCRAWL_JOB;
}

/** Call before the work begins. */
export function endWithCoordinator(): void {
  if (!isJob()) return;
  const end = () => process.kill(process.pid, "SIGTERM");
  if (!process.connected) return void end();
  process.once("disconnect", end);
  // Otherwise a listener on the channel would keep the finished process alive.
  process.channel?.unref();
}

/** Reports the progress of long work from its start. */
export class WorkProgress {
  readonly #line = isJob() ? null : new ProgressLine();
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor() {
    endWithCoordinator();
  }

  /** A coordinator receives at most a few updates a second, but every step that is to be recorded. */
  tell({ text, share, done }: JobStep, nowMs: number): void {
    if (this.#line !== null) return void this.#line.show(text);
    if (!process.connected || (done === null && nowMs - this.#toldMs < stepMs)) return;
    this.#toldMs = nowMs;
    const step = { text: text.slice(0, mostCharacters), share, done: done?.slice(0, mostCharacters) ?? null };
    // A coordinator that stops listening also closes the channel, so this failure needs no handling.
    process.send?.(step, () => {});
  }

  end(): void {
    this.#line?.done();
  }
}

// On whose behalf a `nearcrawl rir` command works: the person who asked a coordinator, else the caller.

export function askerVariables({ by, via }: Asker): Readonly<Record<string, string>> {
  return { NEARCRAWL_JOB_ASKED_BY: by, NEARCRAWL_JOB_VIA: via };
}

/** Records the change in the audit log. Call it after the change. */
export async function recordRegistryChange(
  pool: Pool,
  change: Change,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const { NEARCRAWL_JOB_ASKED_BY: actor, NEARCRAWL_JOB_VIA: via } = env;
  // If there is no channel, these variables are leftovers.
  if (process.send === undefined || !actor || (via !== "page" && via !== "api")) {
    await recordCommand(pool, change);
    return;
  }
  await createAuditLog(pool).record({ ...change, actor, via, remoteAddress: null, at: new Date() });
}

// Shows the progress of an import: phase, position, records with their rate, and remaining time.

export async function withProgress<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const told = new WorkProgress();
  let [phase, sinceMs, last] = ["", 0, ""];
  try {
    return await work((progress) => {
      const nowMs = performance.now();
      // The last text of a phase is recorded when the next phase begins.
      const done = phase !== "" && progress.phase !== phase ? last : null;
      if (progress.phase !== phase) [phase, sinceMs] = [progress.phase, nowMs];
      last = progressText(progress, (nowMs - sinceMs) / 1000);
      const share = progress.total > 1 ? Math.min(1, progress.done / progress.total) : null;
      told.tell({ text: last, share, done }, nowMs);
    });
  } finally {
    told.end();
  }
}

const phases: Readonly<Record<ImportProgress["phase"], string>> = {
  read: "reading",
  nest: "nesting",
  current: "reading the tree in force",
  compare: "comparing",
  write: "writing",
};

/** `elapsedSeconds` is counted from the start of the phase. */
function progressText(progress: ImportProgress, elapsedSeconds: number): string {
  const { phase, done, total, file, records } = progress;
  const share = total > 0 ? Math.min(1, done / total) : 0;
  const parts = [total > 0 ? `${phases[phase]} ${Math.floor(share * 100)} %` : phases[phase]];
  const countsRows = phase === "current" || phase === "write";
  const number = countsRows ? done : records;
  parts.push(`${number.toLocaleString("en")} ${countsRows ? "rows" : "records"}`);
  if ((countsRows || phase === "read") && elapsedSeconds > 0.5) {
    parts.push(`${Math.round(number / elapsedSeconds).toLocaleString("en")}/s`);
    if (share > 0.02) parts.push(`${secondsText((elapsedSeconds * (1 - share)) / share)} left`);
  } else {
    parts.push(secondsText(elapsedSeconds));
  }
  if (file !== "") parts.push(file.split("/").pop() ?? file);
  return parts.join(" · ");
}
