/** The change feed, followed: one line for each change, as it comes, until somebody ends it. */
import { setTimeout as delay } from "node:timers/promises";
import type { ChangeFeed, ChangeQuery } from "#coordinator/changes/change-feed-reads";
import type { PageChange } from "#coordinator/changes/page-change";
import { tooOldWords, unknownWords } from "#coordinator/changes/routes";
import { UsageError } from "#core/errors";
import { readerGone } from "#crawler/cli/closed-output";
import { exitCodes } from "../command-context.ts";

export interface FollowSettings {
  /** The cursor to begin with. */
  readonly at: number;
  readonly query: ChangeQuery;
  readonly lineOf: (change: PageChange) => string;
  /** Ends the following; Ctrl-C when it is left out. */
  readonly signal?: AbortSignal;
  readonly stream?: { write(text: string): unknown };
}

const lookAgainMs = 1000;

/** Resolves when it has been ended, with the cursor to go on from; the process then has the exit code that says by what. */
export async function followChanges(feed: ChangeFeed, settings: FollowSettings): Promise<number> {
  const { query, lineOf, stream = process.stdout } = settings;
  const interrupt = new AbortController();
  const onInterrupt = () => interrupt.abort();
  const gone = readerGone();
  const signal = AbortSignal.any([settings.signal ?? interrupt.signal, gone]);
  if (!settings.signal) process.once("SIGINT", onInterrupt).once("SIGTERM", onInterrupt);
  let { at } = settings;
  try {
    while (!signal.aborted) {
      const found = await feed.after(at, query);
      if (found.type === "too-old") throw new UsageError(tooOldWords(at, found.removedThrough));
      if (found.type === "unknown") throw new UsageError(unknownWords(at, found.last));
      for (const change of found.changes) stream.write(`${lineOf(change)}\n`);
      at = found.next;
      if (!found.more) await delay(lookAgainMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    process.off("SIGINT", onInterrupt).off("SIGTERM", onInterrupt);
  }
  process.exitCode = gone.aborted ? exitCodes.done : exitCodes.interrupted;
  return at;
}
