import { describe, expect, it } from "vitest";
import { HolderOffsets } from "#coordinator/balance/predict-rtt";

function offsetsOf(
  offsets: HolderOffsets,
  holder: number,
  nearest: number,
): Record<number, [number, number]> {
  const found: Record<number, [number, number]> = {};
  offsets.each({ holder, nearest }, (crawler, sumMs, count) => {
    found[crawler] = [sumMs, count];
  });
  return found;
}

describe("offsets by holder", () => {
  it("are summed for each holder, nearest crawler and crawler, however many there are", () => {
    const offsets = new HolderOffsets();

    for (let round = 0; round < 2; round++) {
      for (let holder = 0; holder < 1_000; holder++) {
        for (const nearest of [0, 7]) {
          for (const crawler of [3, 200]) offsets.note({ holder, nearest, crawler }, holder + crawler);
        }
      }
    }

    for (const holder of [0, 63, 64, 128, 130, 999]) {
      expect(offsetsOf(offsets, holder, 7)).toEqual({
        3: [2 * (holder + 3), 2],
        200: [2 * (holder + 200), 2],
      });
    }
    expect(offsetsOf(offsets, 5, 1)).toEqual({});
    expect(offsetsOf(offsets, 5_000, 0)).toEqual({});
  });
});
