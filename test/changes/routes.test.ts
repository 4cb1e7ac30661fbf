/** The change feed over HTTP: as JSON and CSV. */

import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numberChanges, removeOldChanges } from "#coordinator/crawl/changes/change-writes";
import { changePart } from "#coordinator/crawl/changes/start";
import { describeApi } from "#coordinator/open-api";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { type SeededChange, seedChange, seenAt } from "../support/seed-changes.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;

beforeAll(async () => {
  app = webServer(database, { parts: [changePart({ pool: database.pool })] });
  // The first two are deleted: the feed begins after number 2.
  await add({ url: "http://old.example/1" }, { url: "http://old.example/2" });
  await removeOldChanges(database.pool, new Date(seenAt.getTime() + 1));
  await add(
    { url: "http://a.example/docs/1", kind: "first-seen", language: "de", title: "<b>bold</b>" },
    { url: "http://b.example/", kind: "gone" },
    { url: "http://a.example/news" },
  );
});
afterAll(async () => await app?.close());

async function add(...changes: readonly SeededChange[]) {
  for (const change of changes) await seedChange(database.pool, change);
  await numberChanges(database.pool, seenAt);
}

interface Answer {
  readonly changes: readonly { readonly number: number; readonly url: string; readonly words: string }[];
  readonly next: number;
  readonly more: boolean;
}
const get = async (url: string) => await app.inject({ url });
const ask = async (query: string) => (await get(`/api/changes${query}`)).json<Answer>();
const numbersOf = ({ changes }: Answer) => changes.map(({ number }) => number);

describe("the feed as JSON", () => {
  it("matches its description, and continues from its cursor until nothing is left", async () => {
    const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };

    const first = await ask("?since=earliest&limit=2");
    const second = await ask(`?since=${first.next}&limit=2`);
    const none = await ask(`?since=${second.next}`);

    expect(faultsOf(first, { $ref: "#/components/schemas/Changes" }, schemas)).toEqual([]);
    expect([numbersOf(first), first.more]).toEqual([[3, 4], true]);
    expect([numbersOf(second), second.more, numbersOf(none), none.next]).toEqual([[5], false, [], 5]);
    expect(first.changes[0]?.words).toBe("“<b>bold</b>”; 120 words; 8 links");
  });

  it("filters by host, beginning, kind and domain set, and begins now or with the latest", async () => {
    expect(numbersOf(await ask("?since=earliest&host=B.example"))).toEqual([4]);
    expect(numbersOf(await ask("?since=earliest&prefix=http://a.example/docs"))).toEqual([3]);
    expect(numbersOf(await ask("?since=earliest&kind=gone,changed"))).toEqual([4, 5]);
    expect(numbersOf(await ask("?since=earliest&dset=a.example"))).toEqual([3, 5]);
    expect(await ask("?since=now")).toEqual({ changes: [], next: 5, more: false });
    expect(numbersOf(await ask("?limit=2"))).toEqual([4, 5]);
  });

  it("as text leads to earlier changes, if there are any", async () => {
    const text = async (query: string) =>
      (await app.inject({ url: `/changes${query}`, headers: { accept: "text/plain" } })).body;

    expect(await text("")).toContain("Earliest change kept: --since earliest");
    expect(await text("?kind=came-back")).toContain("Earliest change kept: --since earliest");
    expect(await text("?host=never.example")).toContain("No changes match.");
    expect(await text("?host=never.example")).not.toContain("--since earliest");
  });

  it("is a table as CSV", async () => {
    const { body, headers } = await get("/changes?format=csv&since=earliest");

    expect(headers["content-type"]).toBe("text/csv; charset=utf-8");
    expect(body.split("\r\n").slice(0, 2)).toEqual([
      expect.stringContaining("number,kind,url,host,seen_at,noted_at"),
      expect.stringContaining("3,first-seen,http://a.example/docs/1,a.example,2030-01-01T12:00:00.000Z"),
    ]);
  });

  it("says what to do about an expired cursor, and refuses an invalid one", async () => {
    const tooOld = await get("/api/changes?since=1");
    const page = await get("/changes?since=1");
    const wrong = ["since=-1", "since=99", "kind=new", "host=a/b", "prefix=docs", "limit=0", "dset=.."];

    expect(tooOld.statusCode).toBe(410);
    expect(tooOld.json()).toMatchObject({
      error: { message: expect.stringContaining("since=earliest") },
      earliest: 2,
    });
    expect([page.statusCode, page.body.includes("too old")]).toEqual([410, true]);
    for (const query of wrong) {
      const { statusCode, body } = await get(`/api/changes?${query}`);
      expect([query, statusCode]).toEqual([query, 400]);
      expect(body).toContain(query.slice(0, 4));
    }
  });
});

describe("the page", () => {
  it("shows the latest first, with text escaped", async () => {
    const { body } = await get("/changes");

    expect(body.indexOf("http://a.example/news")).toBeLessThan(body.indexOf("http://a.example/docs/1"));
    expect(body).toContain("&lt;b&gt;bold&lt;/b&gt;");
  });

  it("leads through the whole feed from the earliest change kept", async () => {
    const { body } = await get("/changes?since=earliest&limit=1");

    expect(body).toContain('href="/changes?since=3&amp;limit=1" rel="next"');
  });
});
