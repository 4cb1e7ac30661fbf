/** `nearcrawl changes` over a seeded feed: once, from a cursor, and followed. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createChangeFeed } from "#coordinator/changes/change-feed-reads";
import { numberChanges, removeOldChanges } from "#coordinator/changes/change-writes";
import { everyChange } from "#coordinator/changes/page-change";
import type { Database } from "#db/server-database";
import { changesCommand, followChanges } from "#ops/cli/commands/changes";
import { inProcess } from "../../support/command-in-process.ts";
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
afterAll(async () => await database.close());

const run = (...words: string[]) => {
  const place = ["--database-url", database.url, "--schema", database.schema, "--home", "/nonexistent"];
  return inProcess(changesCommand(), [...words, ...place]);
};

it("shows the latest with the cursor to go on from, or JSON", async () => {
  const [text, json] = [await run(), await run("--since", "2", "--json")];

  expect([text.code, json.code]).toEqual([0, 0]);
  expect(text.out).toMatch(
    /2030-01-01 12:00:00 +first seen +http:\/\/b\.example\/ +“A page”; 120 words; 8 links/,
  );
  expect(text.out).toContain("new ones: --since 3");
  expect(JSON.parse(json.out)).toMatchObject({
    changes: [{ number: 3, kind: "first-seen" }],
    next: 3,
    more: false,
  });
});

it("says by its exit code that nothing fits, and refuses cursors that are too old or none", async () => {
  expect(await run("--host", "c.example")).toMatchObject({
    code: 3,
    out: expect.stringContaining("no changes match"),
  });
  const refused = [
    await run("--since", "0"),
    await run("--since", "9"),
    await run("--since", "x"),
    await run("--kind", "new"),
  ];
  expect(refused.map(({ code }) => code)).toEqual([2, 2, 2, 2]);
  expect(refused.map(({ err }) => err)).toEqual([
    expect.stringMatching(/too old.*since=earliest/),
    expect.stringContaining("the latest is 3"),
    expect.stringContaining("is not a cursor"),
    expect.stringContaining('"new" is none of first-seen'),
  ]);
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
