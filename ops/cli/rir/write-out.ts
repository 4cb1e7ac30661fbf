/**
 * Writes to standard output and waits until it is taken, so that a slow reader slows the writer instead of
 * filling its memory. False when nobody reads any more (`… | head`): the command then ends without a word.
 */
export function writeOut(text: string): Promise<boolean> {
  // The failure arrives at the callback too; without a listener it would end the process with a stack.
  if (process.stdout.listenerCount("error") === 0) process.stdout.on("error", () => {});
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (!error) resolve(true);
      else if ((error as NodeJS.ErrnoException).code === "EPIPE") resolve(false);
      else reject(error);
    });
  });
}
