/**
 * The scheduling priority of the process, as in nice(1). Linux keeps one for each thread, so those that run already
 * are set, too. Going back to a higher one takes rights that a crawler should not have.
 */
import { readdirSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import type { CrawlerLog } from "./log.ts";

/** What the system does not allow is told in the log; the crawler goes on as it is. */
export function keepPriority(nice: number, log: CrawlerLog): void {
  try {
    if (getPriority() === nice) return;
    for (const thread of threads()) setPriority(thread, nice);
  } catch (error) {
    log.warn({ priority: nice, error }, "the system does not allow this priority");
  }
}

/** 0: the process, where a system has no list of its threads. */
function threads(): number[] {
  try {
    return readdirSync("/proc/self/task").map(Number);
  } catch {
    return [0];
  }
}
