/** The rules of the house (ops/architecture.md), held against every source file. */
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readHouse } from "#ops/house";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const house = readHouse(root);
const foldersIn = (path: string) =>
  readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);

it("sees the source", () => {
  expect(house.files.length).toBeGreaterThan(500);
  expect(house.files.find(({ path }) => path === "coordinator/main.ts")?.imports.length).toBeGreaterThan(5);
});

it("imports nothing in a circle, types included", () => {
  expect(house.circles).toEqual([]);
});

it("imports nothing of a higher storey", () => {
  expect(house.upwardImports).toEqual([]);
});

it("does in no file what the file's name does not say", () => {
  expect(house.misnamed).toEqual([]);
});

it("keeps the tests of a room in a folder of the room's name", () => {
  const houses = ["migrating-crawler", "rir-import", "ops", "db"];
  const ofNoRoom = ["bench", "coordinator", "end-to-end", "fixtures", "fuzz", "support"];

  expect(
    foldersIn("test").filter((name) => ![...foldersIn("coordinator"), ...houses, ...ofNoRoom].includes(name)),
  ).toEqual([]);
});
