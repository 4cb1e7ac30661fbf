/** A clock that is turned by hand. */
import type { AlarmClock } from "#core/clock";

/** Alarms fire in order when the time passes them. */
export class ManualClock implements AlarmClock {
  #nowMs = 0;
  #alarms: { readonly atMs: number; readonly callback: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  wake(delayMs: number, callback: () => void): () => void {
    const alarm = { atMs: this.#nowMs + delayMs, callback };
    this.#alarms.push(alarm);
    return () => {
      this.#alarms = this.#alarms.filter((one) => one !== alarm);
    };
  }

  async turnTo(atMs: number): Promise<void> {
    await settled();
    for (;;) {
      const next = this.#alarms.toSorted((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > atMs) break;
      this.#alarms = this.#alarms.filter((one) => one !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
      await settled();
    }
    this.#nowMs = atMs;
    await settled();
  }
}

/** Runs all pending microtasks and immediates. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}
