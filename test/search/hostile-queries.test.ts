/**
 * Malicious queries: bounded, and answered or refused with a reason, on the page, over the API and by the command.
 */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedPage, seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedPage(database.pool, {
    url: "https://www.example.org/ferry",
    title: "Ferry timetable",
    text: "Ferries leave the harbour at seven.",
  });
  app = webServer(database);
});
afterAll(async () => await app?.close());

interface Said {
  readonly status: number;
  readonly page: string;
  readonly api: { readonly error?: unknown; readonly note?: string | null; readonly total?: number };
  readonly command: { readonly code: number; readonly out: string; readonly err: string };
}

async function ask(words: string): Promise<Said> {
  const query = new URLSearchParams({ q: words });
  const [page, api, command] = await Promise.all([
    app.inject({ url: `/search?${query}`, headers: { accept: "text/html" } }),
    app.inject(`/api/search?${query}`),
    inProcess(commandNamed("search"), [
      "--database-url",
      database.url,
      "--schema",
      database.schema,
      "--json",
      "--",
      words,
    ]),
  ]);
  expect(page.statusCode).toBe(api.statusCode);
  return { status: page.statusCode, page: page.body, api: api.json(), command };
}

const times = (count: number, word: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => word(at));

describe("a query", () => {
  it("of 1,000 words is refused with the reason", async () => {
    const { status, page, api, command } = await ask(times(1000, (at) => `word${at}`).join(" "));

    expect(status).toBe(400);
    expect(page).toContain("has more than 300 characters");
    expect(JSON.stringify(api)).toContain("has more than 300 characters");
    expect(command).toMatchObject({ code: 2, err: expect.stringContaining("has more than 300 characters") });
  });

  it("with too many words says how many were searched", async () => {
    const { status, page, api, command } = await ask(`ferry ${"a ".repeat(40)}`);

    expect(status).toBe(200);
    expect(page).toContain("Only the first 24 words were searched.");
    expect(api).toMatchObject({ total: 1, note: "Only the first 24 words were searched." });
    expect(JSON.parse(command.out)).toMatchObject({ total: 1, note: api.note });
  });

  it("with stop words only is searched, one that only excludes says so", async () => {
    const common = await ask("the and of to in");
    const { status, page, api, command } = await ask("-ferry -harbour");

    expect([common.status, common.command.code]).toEqual([200, 0]);
    expect(common.api.note).toContain("No page has all of these words");
    expect(status).toBe(200);
    expect(page).toContain("only exclude");
    expect(api).toMatchObject({ total: 0, note: expect.stringContaining("only exclude") });
    expect(command.code).toBe(3);
    expect(JSON.parse(command.out).note).toBe(api.note);
  });

  it.each([
    ["of ten scripts", "ferry harbour паром 渡船 フェリー 나룻배 πορθμείο מעבורת عبارة नाव เรือ բորան"],
    ["of quotes that never close", '"ferry "harbour "" " "seven'],
    ["of operators that lack a side", "or or ferry or -  - -- & | ! ( ) <-> :* '"],
    ["of 24 phrases", times(24, (at) => `"a${at} b${at}"`).join(" ")],
    ["of 24 words, each once more", times(24, () => "ferry").join(" or ")],
    ["of one word of 300 letters", "x".repeat(300)],
    ["of half a character, NUL and marks", "ferry \ud800 \u0000 \u0002\u0003 \u202e \ufeff"],
  ])("%s is answered", async (_, words) => {
    const { status, page, api, command } = await ask(words);

    expect(status).toBe(200);
    expect(page).toContain("<h1");
    expect(api.total).toBe(JSON.parse(command.out).total);
    expect([0, 3]).toContain(command.code);
  });
});
