/** Line feeds found and counted by words, at every alignment, against looking at each byte. */
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { countLineFeeds, lineFeedAt, wordsOf } from "#rir-import/formats/rpsl-scanner";

/** Bytes that differ from a line feed by one bit or by one, which is what the arithmetic could mistake for it. */
const likely = [0x0a, 0x0b, 0x09, 0x8a, 0x0e, 0x1a, 0x00, 0xff, 0x80, 0x61];

describe("line feeds", () => {
  it("are found and counted alike on random bytes (seed 4)", () => {
    const random = seededRandom(4);
    const below = (limit: number) => Math.floor(random() * limit);
    for (let round = 0; round < 20_000; round++) {
      const whole = Buffer.from(Array.from({ length: 40 }, () => likely[below(likely.length)] as number));
      const bytes = whole.subarray(below(5), 20 + below(21));
      const start = below(bytes.length);
      const end = start + below(bytes.length - start + 1);

      const words = wordsOf(bytes);
      const slice = bytes.subarray(start, end);
      const found = slice.indexOf(0x0a);
      expect(lineFeedAt(bytes, words, bytes.byteOffset & 3, start, end)).toBe(
        found < 0 ? end : start + found,
      );
      expect(countLineFeeds(bytes, words, start, end)).toBe(slice.filter((byte) => byte === 0x0a).length);
    }
  });
});
