/** What /health answers while something else goes on. */
import { setTimeout as delay } from "node:timers/promises";

/** One request after the other, so many ms apart, on a connection of its own; returns how to end it and what it saw. */
export function watchHealth(webUrl: string, everyMs = 100): () => Promise<string> {
  const times: number[] = [];
  let failed = 0;
  let over = false;
  const watching = (async () => {
    while (!over) {
      const startMs = performance.now();
      const isOk = await fetch(`${webUrl}/health`, { signal: AbortSignal.timeout(20_000) }).then(
        async (answer) => (await answer.text()) !== "" && answer.ok,
        () => false,
      );
      times.push(performance.now() - startMs);
      if (!isOk) failed += 1;
      await delay(everyMs);
    }
  })();
  return async () => {
    over = true;
    await watching;
    const sorted = times.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(1);
    return `${times.length} requests, median ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms, ${failed} failed`;
  };
}
