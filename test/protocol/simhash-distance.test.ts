import { expect, it } from "vitest";
import { bitCount, simhashDistance } from "#protocol/result";

it.each([
  ["0000000000000000", "0000000000000000", 0],
  ["0000000000000000", "ffffffffffffffff", 64],
  ["8000000000000000", "0000000000000001", 2],
  ["83760f344b682f08", "83760f344b682f0f", 3],
  ["7000000080000000", "0000000000000000", 4],
])("%s and %s differ in %i bits", (one, other, bits) => {
  expect(simhashDistance(one, other)).toBe(bits);
  expect(simhashDistance(other, one)).toBe(bits);
});

it("bits of signed words are counted, too", () => {
  expect([0, 1, -1, 0x80000000 | 0, 0x55555555].map(bitCount)).toEqual([0, 1, 32, 1, 16]);
});
