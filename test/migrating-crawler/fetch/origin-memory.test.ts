/** What is remembered of origins' files across a restart, and which of it is dropped. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
import { OriginMemory } from "#crawler/fetch/origin-memory";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const hourMs = 3_600_000;

function memoryIn(home: string) {
  return new OriginMemory({
    kept: { home, warn: () => {} },
    file: { name: "words.json", version: 1, maxBytes: 1_000_000 },
    longestMs: hourMs,
    maxCharacters: 100_000,
    maxSavedCharacters: 30,
    sizeOf: (word: string) => word.length,
    saved: z.object({ word: z.string() }),
    save: (word) => (word === "" ? null : { saved: { word }, characters: word.length }),
    load: ({ word }) => word,
  });
}

it("saves the most recent origins up to the limit of characters, and none whose value is not to be saved", () => {
  const home = temporaryFolder("nearcrawl-origins-");
  const before = memoryIn(home);
  for (const origin of ["a", "b", "c"]) before.set(origin, origin.repeat(12), hourMs);
  before.set("empty", "", hourMs);
  before.close();

  const after = memoryIn(home);

  expect(["a", "b", "c", "empty"].map((origin) => after.get(origin))).toEqual([
    null,
    "b".repeat(12),
    "c".repeat(12),
    null,
  ]);
});

it.each<[string, object]>([
  ["no origin", { untilMs: Date.now() + 1000, word: "x" }],
  ["no value", { origin: "x", untilMs: Date.now() + 1000 }],
  ["an expired value", { origin: "x", untilMs: Date.now() - 1, word: "x" }],
  ["a validity from a clock that was ahead", { origin: "x", untilMs: Date.now() + 2 * hourMs, word: "x" }],
])("an entry with %s is dropped, and the others are read", (_, damaged) => {
  const home = temporaryFolder("nearcrawl-origins-");
  const sound = { origin: "sound", untilMs: Date.now() + hourMs - 1000, word: "read" };
  writeFileSync(join(home, "words.json"), JSON.stringify({ version: 1, origins: [damaged, sound] }));

  const memory = memoryIn(home);
  memory.close();

  expect([memory.get("x"), memory.get("sound")]).toEqual([null, "read"]);
});

it("a file of another version is ignored, and written again in this one's", () => {
  const home = temporaryFolder("nearcrawl-origins-");
  const file = join(home, "words.json");
  writeFileSync(file, JSON.stringify({ version: 2, origins: [] }));
  const memory = memoryIn(home);
  memory.set("a", "word", hourMs);
  memory.close();

  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ version: 1, origins: [{ origin: "a" }] });
});
