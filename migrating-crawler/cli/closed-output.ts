/**
 * Output that nobody reads any more (`… | head`), for every command of both programs: Node reports it as an error event
 * (EPIPE), which without a listener ends the process with a stack. What is being done goes on to its end without a word,
 * with the exit code that it would have had: a run is not broken off because a pager was closed. A list that is read piece
 * by piece (fetched) ends. Output that cannot be written for another reason (a full disk) ends the process with one line.
 */
import { writeSync } from "node:fs";

/** Not the signal SIGPIPE: who listens for it in Node has it no longer ignored, and any socket that breaks sends it, too. */
const reader = new AbortController();

export function outliveReaders(program: string): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") {
        tellLast(`${program}: output cannot be written: ${error.message}\n`);
        process.exit(1);
      }
      if (stream === process.stdout) reader.abort();
    });
  }
}

/** Aborted once nobody reads standard output any more. */
export function readerGone(): AbortSignal {
  return reader.signal;
}

/** Past the stream, which may be the one that failed. */
function tellLast(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // Nobody can be told.
  }
}
