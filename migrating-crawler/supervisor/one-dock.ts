/** One dock at a time runs a home, and not while the crawler of one that was killed still ends. */
import { join } from "node:path";
import { UsageError } from "#core/errors";
import { holderOf, removeMark, takeMark } from "./process-mark.ts";
import { childMark } from "./start-crawler.ts";

/** A crawler whose dock is gone stops by itself; it may take so long before it is ended. */
const orphanMs = 15_000;
const lookMs = 100;

/** For whoever asks whether the crawler of this home runs. */
export const dockMark = (home: string) => join(home, "dock.pid");

/** The process that runs this home's crawler; null: none does. */
export function runningDock(home: string): number | null {
  return holderOf(dockMark(home));
}

/** Throws a UsageError when another dock runs this home. */
export function takeHome(home: string): void {
  const other = runningDock(home);
  if (other !== null && other !== process.pid) {
    throw new UsageError(`${home}: process ${other} runs the crawler of this folder already`);
  }
  if (takeMark(dockMark(home), process.pid)) return;
  throw new UsageError(`${home}: another process has just begun to run the crawler of this folder`);
}

export function leaveHome(home: string): void {
  removeMark(dockMark(home));
}

/** Resolves when no crawler of an earlier dock runs any more. */
export async function outwaitOrphan(home: string, { withinMs = orphanMs } = {}): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    const orphan = holderOf(childMark(home));
    if (orphan === null) return removeMark(childMark(home));
    if (performance.now() - startedMs > withinMs) process.kill(orphan, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}
