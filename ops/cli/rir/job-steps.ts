/**
 * Connects a `nearcrawl rir` command to the coordinator that started it (registry/run-command): progress goes over the IPC
 * channel, and a closed channel counts as SIGTERM. Started by a person or timer, it has no channel, and progress is a line on
 * standard error.
 */

import type { Pool } from "pg";
import { z } from "zod";
import { createAuditLog } from "#coordinator/database/audit-log";
import type { Asker } from "#coordinator/run/registry/job-store";
import type { JobStep } from "#coordinator/run/registry/jobs";
import type { Change } from "#core/audit";
import { recordCommand } from "../audit-command-change.ts";
import { ProgressLine } from "../output.ts";

/** The form that the coordinator accepts. */
export const jobStep = z.object({
  text: z.string().max(2000),
  share: z.number().min(0).max(1).nullable(),
  done: z.string().max(2000).nullable(),
}) satisfies z.ZodType<JobStep>;

const stepMs = 200;
const mostCharacters = 400;

/** Set by a coordinator for its jobs, because a channel may also belong to a process manager or test runner. */
export const jobMark = { NEARCRAWL_JOB: "1" };

function isJob(): boolean {
  return process.send !== undefined && process.env.NEARCRAWL_JOB === jobMark.NEARCRAWL_JOB;
}

/** Call it before the work begins. */
export function endWithCoordinator(): void {
  if (!isJob()) return;
  const end = () => process.kill(process.pid, "SIGTERM");
  if (!process.connected) return void end();
  process.once("disconnect", end);
  // A listener on the channel would keep the finished process alive.
  process.channel?.unref();
}

/** Reports the progress of long work from its start. */
export class WorkProgress {
  readonly #line = isJob() ? null : new ProgressLine();
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor() {
    endWithCoordinator();
  }

  /** A coordinator is told at most a few times a second, but of every step to record. */
  tell({ text, share, done }: JobStep, nowMs: number): void {
    if (this.#line !== null) return void this.#line.show(text);
    if (!process.connected || (done === null && nowMs - this.#toldMs < stepMs)) return;
    this.#toldMs = nowMs;
    const step = { text: text.slice(0, mostCharacters), share, done: done?.slice(0, mostCharacters) ?? null };
    // A coordinator that stops listening also closes the channel.
    process.send?.(step, () => {});
  }

  end(): void {
    this.#line?.done();
  }
}

// The name for which a `nearcrawl rir` command works: the person who asked a coordinator, else the caller.

export function askerVariables({ by, via }: Asker): Readonly<Record<string, string>> {
  return { NEARCRAWL_JOB_ASKED_BY: by, NEARCRAWL_JOB_VIA: via };
}

/** Records the change in the audit log; call it after the change. */
export async function recordRegistryChange(
  pool: Pool,
  change: Change,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const { NEARCRAWL_JOB_ASKED_BY: actor, NEARCRAWL_JOB_VIA: via } = env;
  // Without a channel these variables are leftovers.
  if (process.send === undefined || !actor || (via !== "page" && via !== "api")) {
    await recordCommand(pool, change);
    return;
  }
  await createAuditLog(pool).record({ ...change, actor, via, remoteAddress: null, at: new Date() });
}
