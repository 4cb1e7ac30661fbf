/**
 * Sets the process's scheduling priority, as nice(1) does. Linux has a priority per thread, so running threads are set too.
 * Raising it again requires rights that a crawler should not have.
 */
import { readdirSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import type { CrawlerLog } from "./log.ts";

export function keepPriority(nice: number, log: CrawlerLog): void {
  try {
    if (getPriority() === nice) return;
    for (const thread of threads()) setPriority(thread, nice);
  } catch (error) {
    log.warn({ priority: nice, error }, "the system does not allow this priority");
  }
}

/** Returns 0, which means the process, if the system does not list its threads. */
function threads(): number[] {
  try {
    return readdirSync("/proc/self/task").map(Number);
  } catch {
    return [0];
  }
}
