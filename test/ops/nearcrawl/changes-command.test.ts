/** `nearcrawl changes` over a seeded feed: once, from a cursor, and followed. */
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { createChangeFeed } from "#coordinator/postgres/changes/change-feed";
import { numberChanges, removeOldChanges } from "#coordinator/postgres/changes/change-numbers";
import { everyChange } from "#core/changes/page-change";
import type { Database } from "#db/connect";
import { followChanges } from "#ops/nearcrawl/changes/follow-changes";
import { changesCommand } from "#ops/nearcrawl/commands/changes";
import { testDatabase } from "../../support/database.ts";
import { seedChange, seenAt } from "../../support/seed-changes.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedChange(database.pool, { url: "http://old.example/" });
  await numberChanges(database.pool, seenAt);
  await removeOldChanges(database.pool, new Date(seenAt.getTime() + 1));
  await seedChange(database.pool, { url: "http://a.example/\u001b[31m", kind: "gone" });
  await seedChange(database.pool, { url: "http://b.example/", kind: "first-seen" });
  await numberChanges(database.pool, seenAt);
});
afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
});
afterAll(async () => await database.close());

async function run(...words: string[]): Promise<string> {
  let out = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
  const place = ["--database-url", database.url, "--schema", database.schema, "--home", "/nonexistent"];
  await changesCommand()
    .exitOverride()
    .parseAsync(["node", "changes", ...words, ...place]);
  vi.restoreAllMocks();
  return out;
}

it("shows the latest with the cursor to go on from, or JSON", async () => {
  const text = await run();
  const json = JSON.parse(await run("--since", "2", "--json"));

  expect(text).toMatch(
    /2030-01-01 12:00:00 +first seen +http:\/\/b\.example\/ +“A page”; 120 words; 8 links/,
  );
  expect(text).toContain("what comes: --since 3");
  expect(json).toMatchObject({ changes: [{ number: 3, kind: "first-seen" }], next: 3, more: false });
});

it("says by its exit code that nothing fits, and refuses cursors that are too old or none", async () => {
  expect(await run("--host", "c.example")).toContain("nothing changed that fits");
  expect(process.exitCode).toBe(3);

  await expect(run("--since", "0")).rejects.toThrow(/too old.*since=earliest/);
  await expect(run("--since", "9")).rejects.toThrow("the latest is 3");
  await expect(run("--since", "x")).rejects.toThrow("no cursor");
  await expect(run("--kind", "new")).rejects.toThrow(/"new" is none of first-seen/);
});

it("followed, writes a line for each change as it comes, and ends with the cursor behind the last", async () => {
  const lines: string[] = [];
  const end = new AbortController();
  const stream = {
    write(text: string) {
      lines.push(text);
      if (lines.length === 3) end.abort();
    },
  };
  const following = followChanges(createChangeFeed(database.pool), {
    at: 1,
    query: { filter: everyChange, limit: 1 },
    lineOf: ({ number, url }) => JSON.stringify({ number, url }),
    signal: end.signal,
    stream,
  });
  await seedChange(database.pool, { url: "http://c.example/" });
  await numberChanges(database.pool, seenAt);

  expect(await following).toBe(4);
  expect(lines.map((line) => JSON.parse(line).number)).toEqual([2, 3, 4]);
  expect(process.exitCode).toBe(130);
});
