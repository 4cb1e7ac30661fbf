/**
 * Output that nobody reads any more (`nearcrawl … | head`): Node reports it as an error event (EPIPE), which
 * without a listener ends the process with a stack. What is being done goes on to its end without a word, with
 * the exit code that it would have had: a run is not broken off because a pager was closed. Output that cannot be written
 * for another reason (a full disk) ends the process with one line.
 */
import { writeSync } from "node:fs";

export function outliveReaders(streams: readonly NodeJS.WritableStream[]): void {
  for (const stream of streams) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") return;
      tellLast(`nearcrawl: output cannot be written: ${error.message}\n`);
      process.exit(1);
    });
  }
}

/** Past the stream, which may be the one that failed. */
function tellLast(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // Nobody can be told.
  }
}
