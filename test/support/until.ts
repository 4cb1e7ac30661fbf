/** Waits until the condition holds; fails with its source text when it does not. */
import { setTimeout as delay } from "node:timers/promises";

export async function until(holds: () => Promise<boolean> | boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${holds.toString()}`);
    await delay(50);
  }
}
