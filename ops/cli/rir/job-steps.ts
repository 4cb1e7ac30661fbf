/**
 * A `nearcrawl rir` command that a coordinator started (registry/run-command) tells it how far it is, over the IPC
 * channel, and ends when the coordinator does: a channel that closes is taken for a SIGTERM. Started by a person or a
 * timer there is no channel, and progress is a line on standard error.
 */

import type { Pool } from "pg";
import { z } from "zod";
import { createAuditLog } from "#coordinator/database/audit-log";
import type { Asker, JobStep } from "#coordinator/run/registry/jobs";
import type { Change } from "#core/audit";
import { recordCommand } from "../audit-command-change.ts";
import { ProgressLine } from "../output.ts";

/** What the coordinator takes. */
export const jobStep = z.object({
  text: z.string().max(2000),
  share: z.number().min(0).max(1).nullable(),
  done: z.string().max(2000).nullable(),
}) satisfies z.ZodType<JobStep>;

const stepMs = 200;
const mostCharacters = 400;

/** What a coordinator sets for its jobs: a channel alone may be anybody's (a process manager's, a test runner's). */
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
  // A listener on the channel would keep the process alive when its work is done.
  process.channel?.unref();
}

/** How far long work is, which begins with it. */
export class WorkProgress {
  readonly #line = isJob() ? null : new ProgressLine();
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor() {
    endWithCoordinator();
  }

  /** A coordinator is told at most a few times a second, but of each step with something to keep. */
  tell({ text, share, done }: JobStep, nowMs: number): void {
    if (this.#line !== null) return void this.#line.show(text);
    if (!process.connected || (done === null && nowMs - this.#toldMs < stepMs)) return;
    this.#toldMs = nowMs;
    const step = { text: text.slice(0, mostCharacters), share, done: done?.slice(0, mostCharacters) ?? null };
    // Whoever does not listen any more closes the channel, too.
    process.send?.(step, () => {});
  }

  end(): void {
    this.#line?.done();
  }
}

// In whose name a `nearcrawl rir` command works: the person's who asked a coordinator for it, else whoever typed it.

export function askerVariables({ by, via }: Asker): Readonly<Record<string, string>> {
  return { NEARCRAWL_JOB_ASKED_BY: by, NEARCRAWL_JOB_VIA: via };
}

/** Writes the change to the audit log; call it once the change is made. */
export async function recordRegistryChange(
  pool: Pool,
  change: Change,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const { NEARCRAWL_JOB_ASKED_BY: actor, NEARCRAWL_JOB_VIA: via } = env;
  // Without a channel to a coordinator these variables are left over from somewhere.
  if (process.send === undefined || !actor || (via !== "page" && via !== "api")) {
    await recordCommand(pool, change);
    return;
  }
  await createAuditLog(pool).record({ ...change, actor, via, remoteAddress: null, at: new Date() });
}
