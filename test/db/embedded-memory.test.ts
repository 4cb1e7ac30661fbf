/** What the embedded Postgres takes of a machine's memory. */
import { expect, test } from "vitest";
import { sharedMegabytes } from "#db/embedded-cluster";

const gigabyte = 2 ** 30;

test("Postgres keeps tables in an eighth of the memory, from its own default to a gigabyte", () => {
  expect([0.5, 1, 4, 8, 64].map((gigabytes) => sharedMegabytes(gigabytes * gigabyte))).toEqual([
    128, 128, 512, 1024, 1024,
  ]);
});

test("without being told, it is what this machine or its container has", () => {
  expect(sharedMegabytes()).toBeGreaterThanOrEqual(128);
  expect(sharedMegabytes()).toBeLessThanOrEqual(1024);
});
