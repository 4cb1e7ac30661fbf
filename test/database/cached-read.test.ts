import { describe, expect, it } from "vitest";
import { KeptAnswer } from "#coordinator/database/cached-read";

function counted(costMs: number) {
  const clock = { nowMs: 0, asked: 0 };
  const kept = new KeptAnswer(
    async () => {
      clock.asked += 1;
      clock.nowMs += costMs;
      return clock.asked;
    },
    () => clock.nowMs,
  );
  return { clock, kept };
}

describe("a kept answer", () => {
  it("is read again after a second when reading is cheap", async () => {
    const { clock, kept } = counted(1);

    expect([await kept.get(), await kept.get()]).toEqual([1, 1]);
    clock.nowMs += 1000;
    expect(await kept.get()).toBe(2);
  });

  it("is kept twenty times as long as the read took", async () => {
    const { clock, kept } = counted(500);

    await kept.get();
    clock.nowMs += 9999;
    expect(await kept.get()).toBe(1);
    clock.nowMs += 1;
    expect(await kept.get()).toBe(2);
  });

  it("is read once for all concurrent callers", async () => {
    const { clock, kept } = counted(1);

    await Promise.all(Array.from({ length: 20 }, () => kept.get()));

    expect(clock.asked).toBe(1);
  });

  it("that fails is not kept", async () => {
    let fails = true;
    const kept = new KeptAnswer(
      async () => {
        if (fails) throw new Error("away");
        return "here";
      },
      () => 0,
    );

    await expect(kept.get()).rejects.toThrow("away");
    fails = false;
    expect(await kept.get()).toBe("here");
  });
});
