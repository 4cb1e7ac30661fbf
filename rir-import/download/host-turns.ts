/** One request at a time to each host, in the order they were asked for. */
export class HostTurns {
  readonly #last = new Map<string, Promise<void>>();

  /** Waits for the host to be free; the answer frees it again. Rejects with the signal's reason. */
  async take(host: string, signal: AbortSignal): Promise<() => void> {
    const before = this.#last.get(host) ?? Promise.resolve();
    let free = () => {};
    const mine = new Promise<void>((resolve) => {
      free = resolve;
    });
    this.#last.set(
      host,
      before.then(() => mine),
    );
    try {
      await orAborted(before, signal);
      return free;
    } catch (error) {
      free();
      throw error;
    }
  }
}

function orAborted(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    wait.then(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    });
  });
}
