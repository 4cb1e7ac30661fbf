/**
 * Output that nobody reads any more (`nearcrawl … | head`): Node reports it as an error event (EPIPE), which
 * without a listener ends the process with a stack. What is being done goes on to its end without a word, with
 * the exit code that it would have had: a run is not broken off because a pager was closed.
 */
export function outliveReaders(streams: readonly NodeJS.WritableStream[]): void {
  for (const stream of streams) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
}
