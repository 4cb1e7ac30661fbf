/** The range coder restores its input, whatever bytes it produces. */
import { expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { RangeDecoder, RangeEncoder } from "#protocol/packed/numbers";

function again(values: readonly number[], count: number): { bytes: number; values: number[] } {
  const encoder = new RangeEncoder();
  for (const value of values) encoder.bits(value, count);
  const bytes = encoder.finish();
  const decoder = new RangeDecoder(bytes);
  return { bytes: bytes.length, values: values.map(() => decoder.bits(count)) };
}

it.each([0, 1, 2, 3, 4, 5, 20])(
  "returns %d numbers whose bytes are all zeros, which are not sent",
  (length) => {
    const zeros = Array.from({ length }, () => 0);

    expect(again(zeros, 8).values).toEqual(zeros);
  },
);

it("returns numbers with many trailing zeros, for which fewer bytes are sent", () => {
  const random = seededRandom(4);
  for (let round = 0; round < 2000; round++) {
    const length = 1 + Math.floor(random() * 12);
    const values = Array.from({ length }, () => (random() < 0.6 ? 0 : Math.floor(random() * 256)));

    expect(again(values, 8).values, JSON.stringify(values)).toEqual(values);
  }
});

it("refuses to read on beyond the bytes and the zeros that were left out", () => {
  const encoder = new RangeEncoder();
  encoder.bits(77, 8);
  const decoder = new RangeDecoder(encoder.finish());

  expect(() => {
    for (let count = 0; count < 8; count++) decoder.bits(16);
  }).toThrow("packed numbers end too early");
});
