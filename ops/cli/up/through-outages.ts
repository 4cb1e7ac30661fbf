/**
 * A run's own questions to the database outlive the server: one that was killed is started again (the embedded one by
 * whoever uses it), and the question is asked again. Only for what may be done twice.
 */
import { setTimeout as delay } from "node:timers/promises";
import { DatabaseError } from "#core/errors";
import { isConnectionLost, wordsOf } from "#db/server-database";
import type { RunVoice } from "./run-voice.ts";

export type ThroughOutages = <T>(work: () => Promise<T>) => Promise<T>;

const lookAgainMs = 500;
/** A shorter absence is told when it is over (run-record.ts). */
const tellAgainMs = 20_000;

export function throughOutages(
  voice: Pick<RunVoice, "note">,
  stopRequested: Promise<unknown>,
): ThroughOutages {
  let isStopped = false;
  void stopRequested.then(() => {
    isStopped = true;
  });
  return async (work) => {
    let toldMs = performance.now();
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isConnectionLost(error)) throw error;
        const words = `the database does not answer: ${wordsOf(error)}`;
        if (isStopped) throw new DatabaseError(words, { cause: error });
        if (performance.now() - toldMs > tellAgainMs) {
          toldMs = performance.now();
          voice.note(`${words}; the run waits for it`);
        }
      }
      await delay(lookAgainMs);
    }
  };
}
