/** The change feed over HTTP: as JSON, CSV and a stream of events, over real sockets. */

import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numberChanges, removeOldChanges } from "#coordinator/changes/change-writes";
import { changePart } from "#coordinator/changes/start";
import { describeApi } from "#coordinator/open-api";
import { maxOpenRequests } from "#coordinator/web/limits";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { type SeededChange, seedChange, seenAt } from "../support/seed-changes.ts";
import { webServer } from "../support/web-server.ts";

let database: Database;
let app: FastifyInstance;
let base: string;

beforeAll(async () => {
  database = await testDatabase();
  app = webServer(database, {
    parts: [changePart({ pool: database.pool, log: silentLog, version: "0.1.0" })],
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  // The first two are let go: the feed begins behind number 2.
  await add({ url: "http://old.example/1" }, { url: "http://old.example/2" });
  await removeOldChanges(database.pool, new Date(seenAt.getTime() + 1));
  await add(
    { url: "http://a.example/docs/1", kind: "first-seen", language: "de", title: "<b>bold</b>" },
    { url: "http://b.example/", kind: "gone" },
    { url: "http://a.example/news" },
  );
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

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
  it("is as it is described, and goes on behind its cursor until nothing is left", async () => {
    const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };

    const first = await ask("?since=earliest&limit=2");
    const second = await ask(`?since=${first.next}&limit=2`);
    const none = await ask(`?since=${second.next}`);

    expect(faultsOf(first, { $ref: "#/components/schemas/Changes" }, schemas)).toEqual([]);
    expect([numbersOf(first), first.more]).toEqual([[3, 4], true]);
    expect([numbersOf(second), second.more, numbersOf(none), none.next]).toEqual([[5], false, [], 5]);
    expect(first.changes[0]?.words).toBe("“<b>bold</b>”; 120 words; 8 links");
  });

  it("is narrowed by host, beginning, kind and domain set, and begins now or with the latest", async () => {
    expect(numbersOf(await ask("?since=earliest&host=B.example"))).toEqual([4]);
    expect(numbersOf(await ask("?since=earliest&prefix=http://a.example/docs"))).toEqual([3]);
    expect(numbersOf(await ask("?since=earliest&kind=gone,changed"))).toEqual([4, 5]);
    expect(numbersOf(await ask("?since=earliest&dset=a.example"))).toEqual([3, 5]);
    expect(await ask("?since=now")).toEqual({ changes: [], next: 5, more: false });
    expect(numbersOf(await ask("?limit=2"))).toEqual([4, 5]);
  });

  it("is a table as CSV", async () => {
    const { body, headers } = await get("/changes?format=csv&since=earliest");

    expect(headers["content-type"]).toBe("text/csv; charset=utf-8");
    expect(body.split("\r\n").slice(0, 2)).toEqual([
      expect.stringContaining("number,kind,url,host,seen_at,noted_at"),
      expect.stringContaining("3,first-seen,http://a.example/docs/1,a.example,2030-01-01T12:00:00.000Z"),
    ]);
  });

  it("says of a cursor whose changes are gone what to do, and of what is none that it is none", async () => {
    const tooOld = await get("/api/changes?since=1");
    const page = await get("/changes?since=1");
    const wrong = [
      "since=-1",
      "since=1e3",
      "since=99",
      "since=soon",
      "kind=new",
      "host=a/b",
      "prefix=docs",
      "limit=0",
    ];

    expect(tooOld.statusCode).toBe(410);
    expect(tooOld.json()).toMatchObject({
      error: { message: expect.stringContaining("since=earliest") },
      earliest: 2,
    });
    expect([page.statusCode, page.body.includes("too old")]).toEqual([410, true]);
    for (const query of [...wrong, "dset=..", "host=a.example&prefix=http://b.example/"]) {
      const { statusCode, body } = await get(`/api/changes?${query}`);
      expect([query, statusCode]).toEqual([query, 400]);
      expect(body).toContain(query.slice(0, 4));
    }
  });
});

/** A stream of events, read until so many have come. */
async function listen(query: string, headers: Record<string, string> = {}, path = "/api/changes/stream") {
  const { statusCode, headers: sent, body } = await request(`${base}${path}${query}`, { headers });
  body.on("error", () => {});
  const chunks = body[Symbol.asyncIterator]();
  let text = "";
  return {
    statusCode,
    type: sent["content-type"],
    async ids(count: number): Promise<number[]> {
      const idsIn = () =>
        [...text.matchAll(/^event: change\nid: (\d+)\ndata: /gm)].map(([, id]) => Number(id));
      while (idsIn().length < count) {
        const { value, done } = await chunks.next();
        if (done) throw new Error(`the stream ended: ${text}`);
        text += String(value);
      }
      return idsIn();
    },
    end: () => body.destroy(),
  };
}

describe("the feed as events", () => {
  it("begins behind the cursor, goes on as changes come, and behind what a browser saw last when it is back", async () => {
    const stream = await listen("?since=earliest");
    const before = await stream.ids(3);
    await add({ url: "http://a.example/later" });
    const after = await stream.ids(4);
    stream.end();

    const back = await listen("?since=earliest", { "last-event-id": "4" });
    const rest = await back.ids(2);
    back.end();

    expect(stream.type).toBe("text/event-stream; charset=utf-8");
    expect([before, after, rest]).toEqual([
      [3, 4, 5],
      [3, 4, 5, 6],
      [5, 6],
    ]);
  });

  it.each(["/api/changes", "/changes"])("is at %s, too, for who accepts nothing else", async (path) => {
    const accept = "text/event-stream";
    const stream = await listen("?since=earliest&kind=gone", { accept, "last-event-id": "3" }, path);
    const ids = await stream.ids(1);
    stream.end();
    const tooOld = await listen("?since=1", { accept }, path);
    const both = await app.inject({ url: path, headers: { accept: `application/json, ${accept}` } });

    expect([stream.type, ids]).toEqual(["text/event-stream; charset=utf-8", [4]]);
    expect(tooOld.statusCode).toBe(410);
    expect(both.headers["content-type"]).toContain("application/json");
  });

  it("takes no place of those who are answered at once, at whichever address it is", async () => {
    const accept = "text/event-stream";
    const streams = await Promise.all(
      Array.from({ length: maxOpenRequests }, () => listen("?since=earliest", { accept }, "/api/changes")),
    );

    const { statusCode } = await request(`${base}/api/changes`);
    for (const stream of streams) stream.end();

    expect(streams.map((stream) => stream.statusCode)).toEqual(streams.map(() => 200));
    expect(statusCode).toBe(200);
  });

  it("has what a reader asked for alone", async () => {
    const stream = await listen("?since=earliest&host=b.example");
    await add({ url: "http://c.example/" }, { url: "http://b.example/" });

    const ids = await stream.ids(2);
    stream.end();

    expect(ids).toEqual([4, 8]);
  });

  it("refuses a cursor that is too old or none, with a status", async () => {
    const refused = await Promise.all(
      ["?since=1", "?since=99", "?kind=x"].map(async (query) => await listen(query)),
    );
    const back = await listen("", { "last-event-id": "1" });

    expect([...refused, back].map(({ statusCode }) => statusCode)).toEqual([410, 400, 400, 410]);
  });
});

describe("the page", () => {
  it("shows the latest first, escaped, and where it is kept alive", async () => {
    const { body } = await get("/changes");

    expect(body.indexOf("http://a.example/news")).toBeLessThan(body.indexOf("http://a.example/docs/1"));
    expect(body).toContain("&lt;b&gt;bold&lt;/b&gt;");
    expect(body).toMatch(/data-stream="\/api\/changes\/stream\?since=\d+"/);
  });

  it("leads through the whole feed from the earliest that is kept", async () => {
    const { body } = await get("/changes?since=earliest&limit=1");

    expect(body).toContain('href="/changes?since=3&amp;limit=1" rel="next"');
    expect(body).not.toContain("data-stream");
  });
});
