import { describe, expect, it } from "vitest";
import { DueQueue } from "#ops/world/world-state";

describe("the queue of what is due", () => {
  it("runs everything once, in the order of the times, and what is due at one time in the order it came", async () => {
    const queue = new DueQueue();
    const startMs = performance.now() + 5;
    const done: string[] = [];
    const dueAfterMs = [9, 3, 7, 3, 0, 12, 3, 5, 1, 8, 2, 11];
    await new Promise<void>((resolve) => {
      for (const [index, afterMs] of dueAfterMs.entries()) {
        queue.at(startMs + afterMs, () => done.push(`${String(afterMs).padStart(2, "0")} ${index}`));
      }
      queue.at(startMs + 13, resolve);
    });

    expect(done).toEqual([
      "00 4",
      "01 8",
      "02 10",
      "03 1",
      "03 3",
      "03 6",
      "05 7",
      "07 2",
      "08 9",
      "09 0",
      "11 11",
      "12 5",
    ]);
  });

  it("takes new items while it runs, also ones whose time has passed", async () => {
    const queue = new DueQueue();
    const order = await new Promise<number[]>((resolve) => {
      const seen: number[] = [];
      queue.at(performance.now() + 2, () => {
        seen.push(1);
        queue.at(performance.now() - 100, () => seen.push(2));
        queue.at(performance.now() + 4, () => resolve([...seen, 3]));
      });
    });

    expect(order).toEqual([1, 2, 3]);
  });

  it("forgets everything when it is closed", async () => {
    const queue = new DueQueue();
    let ran = false;
    queue.at(performance.now() + 1, () => {
      ran = true;
    });
    queue.close();
    const other = new DueQueue();
    await new Promise<void>((resolve) => other.at(performance.now() + 10, resolve));

    expect(ran).toBe(false);
  });
});
