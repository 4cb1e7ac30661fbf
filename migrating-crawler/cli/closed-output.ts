/**
 * Handles output whose reader has gone (`… | head`) for all commands. Node reports it as an error event (EPIPE), which would
 * end the process with a stack trace. Closing a pager must not abort a command, so the command continues silently to its
 * normal exit code, and only listings (`fetched`) stop early. If output fails for another reason, such as a full disk, the
 * process ends with one line.
 */
import { writeSync } from "node:fs";

/** SIGPIPE is not used, because listening for it makes Node stop ignoring it, and any broken socket raises it too. */
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

/** Bypasses the stream, because the stream may be what failed. */
function tellLast(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // If standard error has no reader either, nothing more can be done.
  }
}
