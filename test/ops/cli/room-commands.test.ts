/** Commands made from rooms' operations answer from a seeded database as the API describes, and as text. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { z } from "zod";
import { apiOperations } from "#coordinator/open-api";
import type { Database } from "#db/server-database";
import { answerText } from "#ops/cli/answer-text";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { seedOperation } from "../../support/seed-operation.ts";
import { seedWorld } from "../../support/seed-world.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await seedOperation(database.pool);
});
afterAll(async () => await database?.close());

const operations = apiOperations as Record<
  string,
  { readonly answers: Readonly<Record<number, { readonly schema?: z.ZodType }>> }
>;

const readings: readonly (readonly [string, string, string])[] = [
  ["--host www.example.org", "coverage", "coverage"],
  ["--range 24h", "recrawl", "recrawlPlans"],
  ["in-hand --sort open", "queue", "hostsInHand"],
  ["--only", "accuracy", "accuracy"],
  ["https://www.example.org/", "page", "page"],
  ["1.2.3.0/24 --view tree", "explore", "explore"],
  ["coverage", "report", "coverageReport"],
  ["www.example.org --part speed", "site", "site"],
  ["show", "policy", "policies"],
  ["show athens --range 24h", "fleet", "crawler"],
  ["failures --hours 24", "fleet", "failures"],
  ["1.2.3.4", "who", "who"],
  ["harbour --explain", "search", "search"],
];

it.each(readings)(
  "%s is answered as the API describes it, and as text",
  async (words, command, operation) => {
    const place = ["--database-url", database.url, "--schema", database.schema, "--home", "/nonexistent"];
    const args = [...words.split(" ").filter((word) => word !== ""), ...place];

    const json = await inProcess(commandNamed(command), [...args, "--json"]);
    const text = await inProcess(commandNamed(command), args);

    const { schema } = operations[operation]!.answers[200]!;
    expect([json.code, json.err, text.err]).toEqual([text.code, "", ""]);
    expect([0, 3]).toContain(json.code);
    expect(schema!.safeParse(JSON.parse(json.out)).error?.issues ?? []).toEqual([]);
    expect(text.out).not.toMatch(/\[object|undefined|NaN/);
    expect(text.out.trim()).not.toBe("");
  },
);

it.each([
  ["set example.org --seconds soon", "site-caps", 2, "--seconds soon: must be a number\n"],
  ["nowhere", "explore", 2, "at: nowhere is not an address"],
  ["--country CY", "explore", 3, ""],
  [
    "set lease.seconds=10",
    "policy",
    2,
    "lease.seconds: it is read at the start, from the coordinator's file",
  ],
  ["show delegation.moon", "policy", 3, ""],
  ["move athens --to nobody", "fleet", 3, "nobody"],
  ["move athens --to athens", "fleet", 2, "athens was not moved: name another crawler"],
])("%s ends with a code of its own, and what is wrong is named", async (words, command, code, err) => {
  const place = ["--database-url", database.url, "--schema", database.schema, "--home", "/nonexistent"];

  const outcome = await inProcess(commandNamed(command), [...words.split(" "), ...place]);

  expect(outcome).toMatchObject({ code, err: expect.stringContaining(err) });
});

it.each([
  [
    "values are lines, by their units",
    { rttMs: 12.34, bodyBytes: 2048, isOpen: true, more: false, at: null },
    {},
    "rtt         12.3 ms\nbody bytes  2.05 kB\nis open     yes",
  ],
  [
    "lists are tables of the columns that are named",
    { crawlers: [{ name: "athens", seenAt: "2026-03-01T12:00:00Z", key: "k" }] },
    { crawlers: "name seenAt" },
    "crawlers\nname    seen\n──────  ───────────────────────\nathens  2026-03-01 12:00:00 UTC",
  ],
  ["an empty list that is asked for is said", { crawlers: [] }, { crawlers: "name" }, "crawlers  none"],
  ["escape sequences stay out", { title: "a\u001b[31m" }, {}, "title  a [31m"],
])("%s", (_, answer, columns, text) => {
  expect(answerText(answer, columns as Record<string, string>)).toBe(text);
});
