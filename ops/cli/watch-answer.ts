/**
 * `--watch`: an answer again and again. On a terminal each takes the place of the one before, below the top left
 * corner and on the terminal's second screen, so that what was there comes back; elsewhere each is a block of its own.
 * Ctrl-C ends it with 130, and a reader that is gone (`… | head`) with 0. An answer that fails is said in its place, and the next one is tried.
 */

import { setTimeout as delay } from "node:timers/promises";
import { timerMs } from "#core/timer-ms";
import { readerGone } from "#crawler/cli/closed-output";
import { exitCodes } from "./exit-codes.ts";
import { printable } from "./output.ts";

export interface WatchSettings {
  readonly everySeconds: number;
  /** Ends the watching; Ctrl-C when it is left out. */
  readonly signal?: AbortSignal;
  readonly stream?: WatchStream;
}

export interface WatchStream {
  readonly isTTY?: boolean;
  readonly rows?: number;
  write(text: string): unknown;
}

const secondScreen = "\x1b[?1049h\x1b[?25l";
const firstScreen = "\x1b[?25h\x1b[?1049l";
const home = "\x1b[H";
const clearLine = "\x1b[K";
const clearBelow = "\x1b[J";

/** Resolves when it has been ended; the process then has the exit code that says by what. */
export async function watchAnswer(render: () => Promise<string>, settings: WatchSettings): Promise<void> {
  const { everySeconds, stream = process.stdout } = settings;
  const interrupt = new AbortController();
  const onInterrupt = () => interrupt.abort();
  const gone = readerGone();
  const signal = AbortSignal.any([settings.signal ?? interrupt.signal, gone]);
  if (!settings.signal) process.once("SIGINT", onInterrupt).once("SIGTERM", onInterrupt);
  if (stream.isTTY) stream.write(secondScreen);
  try {
    while (!signal.aborted) {
      show(await answerOf(render), stream);
      await delay(timerMs(everySeconds * 1000), undefined, { signal }).catch(() => {});
    }
  } finally {
    if (stream.isTTY) stream.write(firstScreen);
    process.off("SIGINT", onInterrupt).off("SIGTERM", onInterrupt);
  }
  process.exitCode = gone.aborted ? exitCodes.done : exitCodes.interrupted;
}

async function answerOf(render: () => Promise<string>): Promise<string> {
  try {
    return await render();
  } catch (error) {
    return printable(`no answer: ${error instanceof Error ? error.message : String(error)}`, 300);
  }
}

/** What does not fit the screen is left out below: the most important stands above. */
function show(text: string, stream: WatchStream): void {
  if (!stream.isTTY) {
    stream.write(`${text}\n\n`);
    return;
  }
  const lines = text.split("\n").slice(0, Math.max(1, (stream.rows ?? 24) - 1));
  stream.write(`${home}${lines.map((line) => `${line}${clearLine}\n`).join("")}${clearBelow}`);
}
