/** How much memory the embedded Postgres uses, and how much disk a slot may retain. */
import { expect, test } from "vitest";
import { sharedMegabytes, slotMegabytes } from "#db/embedded-cluster";

const gigabyte = 2 ** 30;

test("Postgres keeps tables in an eighth of the memory, from its own default to a gigabyte", () => {
  expect([0.5, 1, 4, 8, 64].map((gigabytes) => sharedMegabytes(gigabytes * gigabyte))).toEqual([
    128, 128, 512, 1024, 1024,
  ]);
});

test("a slot holds back a quarter of the free disk, from one gigabyte to sixteen", () => {
  expect([0, 4, 20, 64, 1000].map((gigabytes) => slotMegabytes(gigabytes * gigabyte))).toEqual([
    1024, 1024, 5120, 16_384, 16_384,
  ]);
});
