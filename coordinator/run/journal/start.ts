/** The journal of a running coordinator: copies changes at once, and checks the database periodically. */
import type { Pool } from "pg";
import type { Log } from "#core/log";
import { jobs, type Timekeeper } from "#core/scheduler";
import { within } from "#core/timer-ms";
import { journalDays } from "./epoch.ts";
import { JournalError } from "./journal-file-store.ts";
import { forgetEntries } from "./journal-store.ts";
import { hasGoneBack, type ReviewedDatabase } from "./went-back-store.ts";

interface JournalPorts {
  readonly pool: Pool;
  readonly reviewed: ReviewedDatabase;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  /** For how many days people's actions are kept (policy retention.recordDays). */
  readonly keepDays: () => number;
  readonly log: Pick<Log, "warn" | "error">;
  readonly now: () => Date;
}

const reviewMs = 5000;
const catchUpMs = 60_000;
/** Maximum time for the last copy, so that a database that hangs does not delay the shutdown. */
const lastCatchUpMs = 2000;
const forgetMs = 3_600_000;
const dayMs = 86_400_000;

export function journalDuties(ports: JournalPorts) {
  const { pool, reviewed, timekeeper, log, now } = ports;
  const { journal } = reviewed;
  let following: { stop(): Promise<void> } | null = null;
  let tell: (words: string) => void = () => {};
  const wentBack = new Promise<string>((resolve) => {
    tell = resolve;
  });
  const failed = (error: unknown) =>
    log.error({ error }, "the journal is behind the database, and is tried again");
  let fault: { readonly words: string; readonly since: Date } | null = null;
  const catchUp = async () => {
    try {
      await journal?.catchUp();
      fault = null;
    } catch (error) {
      // Failures of the database itself are reported elsewhere.
      if (error instanceof JournalError)
        fault = { words: "the journal beside the database cannot be written", since: fault?.since ?? now() };
      throw error;
    }
  };
  const review = async (): Promise<boolean> => {
    const why = await hasGoneBack(pool, reviewed.epoch, journal);
    if (why === null) return false;
    log.warn({ epoch: reviewed.epoch, why }, "the database went back: the coordinator starts over");
    tell(why);
    return true;
  };
  const ago = (days: number) => new Date(now().getTime() - days * dayMs);
  return {
    start: async () => {
      timekeeper.every(jobs.reviewDatabase, reviewMs, review, { onEach: true, whateverTheClock: true });
      timekeeper.every("keep-journal", catchUpMs, catchUp, { onEach: true, whateverTheClock: true });
      timekeeper.every(
        "forget-journal",
        forgetMs,
        async () => {
          await forgetEntries(pool, ago(journalDays));
          await journal?.files.forget(ago(ports.keepDays()));
        },
        { onEach: true },
      );
      following = (await journal?.follow(() => void catchUp().catch(failed))) ?? null;
      await catchUp();
    },
    stop: async () => {
      // The database may be lost after the shutdown, so the latest changes by any process are copied.
      await within(lastCatchUpMs, catchUp()).catch(failed);
      await following?.stop();
    },
    /** Resolves when everything committed before is in the files. Rejects if they cannot be written. */
    catchUp,
    /** Whether the database was restored to another state. Never rejects. */
    hasGoneBack: async () => {
      try {
        return await review();
      } catch (error) {
        log.error({ error }, "whether the database went back cannot be told");
        return true;
      }
    },
    /** Resolves with the reason if the coordinator must restart. */
    wentBack,
    /** Returns why the files lack changes; null if they are complete. */
    fault: () => fault,
  };
}
