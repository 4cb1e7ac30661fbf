/**
 * Handles output that nobody reads any more (`… | head`) for all commands. Node reports it as an error event (EPIPE),
 * which would end the process with a stack trace. Instead the work continues silently to its normal exit code, because
 * closing a pager must not abort a run; incremental lists (fetched) stop. Output that fails for another reason (a full
 * disk) ends the process with one line.
 */
import { writeSync } from "node:fs";

/** Does not use SIGPIPE: listening for it makes Node stop ignoring it, and any broken socket sends it too. */
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

export function readerGone(): AbortSignal {
  return reader.signal;
}

/** Bypasses the stream, which may be the one that failed. */
function tellLast(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // Nobody reads this either.
  }
}
