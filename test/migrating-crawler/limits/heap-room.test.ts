/** The room that V8 gets in an extraction thread, by what the partner allows. */
import { expect, it } from "vitest";
import { youngMegabytes } from "#crawler/limits/heap-room";

const mebibyte = 1024 * 1024;

it("half a gigabyte is room enough, and no limit, too; less is none", () => {
  expect(youngMegabytes(512 * mebibyte)).toBe(youngMegabytes(null));
  expect(youngMegabytes(512 * mebibyte - 1)).toBe(youngMegabytes(192 * mebibyte));
  expect(youngMegabytes(192 * mebibyte)).toBeLessThan(youngMegabytes(null));
});
