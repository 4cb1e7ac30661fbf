/** Readers of the stream of changes: slow ones, quiet ones and those that are far behind, by a clock that the test turns. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ChangeFeed, ChangesRead } from "#coordinator/changes/change-feed-reads";
import { changeFits, everyChange, type PageChange } from "#coordinator/changes/page-change";
import { ChangeStream, mostChangeReaders } from "#coordinator/changes/stream-routes";

let nowMs: number;
let feed: ChangeFeed & { add(...urls: string[]): void; removeThrough(number: number): void; reads: number };
let stream: ChangeStream;
beforeEach(() => {
  nowMs = 0;
  feed = feedInMemory();
  stream = new ChangeStream({
    feed,
    nowMs: () => nowMs,
    onError: (error) => {
      throw error;
    },
  });
});
afterEach(() => stream.close());

function feedInMemory(): typeof feed {
  const changes: PageChange[] = [];
  let removedThrough = 0;
  const made = {
    reads: 0,
    add(...urls: string[]) {
      for (const url of urls) changes.push({ ...change, url, number: changes.length + 1 });
    },
    removeThrough(number: number) {
      removedThrough = number;
    },
    state: async () => ({ last: changes.length, removedThrough, jumps: [] }),
    async after(since: number, { filter, limit }: Parameters<ChangeFeed["after"]>[1]): Promise<ChangesRead> {
      made.reads += 1;
      if (since < removedThrough) return { type: "too-old", removedThrough };
      const fitting = changes.slice(since).filter((one) => changeFits(filter, one));
      const found = fitting.slice(0, limit);
      const more = fitting.length > limit;
      return { type: "read", changes: found, next: more ? found.at(-1)!.number : changes.length, more };
    },
    latest: async () => ({ type: "read" as const, changes: [], next: changes.length, more: false }),
  };
  return made;
}

const change: PageChange = {
  number: 0,
  host: "a.example",
  notedAt: new Date(0),
  kind: "gone",
  url: "http://a.example/",
  seenAt: new Date(0),
  status: 404,
  reason: "status 404",
  language: null,
  digestBefore: null,
  digestAfter: null,
  simhashDistance: null,
  titleBefore: null,
  titleAfter: null,
  wordsBefore: null,
  wordsAfter: null,
  linksBefore: null,
  linksAfter: null,
  linksAdded: null,
  linksRemoved: null,
  location: null,
  stated: null,
  statedBefore: null,
  difference: null,
};

/** A reader that takes everything, or nothing. */
async function reader({ at = 0, filter = everyChange, takes = true }) {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const written: string[] = [];
  const state = { takes };
  response.write = (text: unknown) => written.push(String(text)) > 0;
  response.end = (text?: unknown) => {
    if (typeof text === "string") written.push(text);
    response.emit("close");
    return response;
  };
  Object.defineProperty(response, "writableLength", {
    get: () => (state.takes ? 0 : written.join("").length),
  });
  stream.listen(response, { at, filter });
  await stream.tick();
  return {
    response,
    state,
    text: () => written.join(""),
    ids: () => [...written.join("").matchAll(/^event: change\nid: (\d+)/gm)].map(([, id]) => Number(id)),
  };
}

it("a reader that is behind is served from the table, then all from one reading of what is new", async () => {
  feed.add("http://a.example/1", "http://a.example/2");
  const behind = await reader({ at: 0 });
  const others = await Promise.all(Array.from({ length: 20 }, () => reader({ at: 2 })));
  await stream.tick();
  const before = feed.reads;

  feed.add("http://a.example/3");
  await stream.tick();

  expect(behind.ids()).toEqual([1, 2, 3]);
  for (const other of others) expect(other.ids()).toEqual([3]);
  expect(feed.reads - before).toBe(1);
});

it("a reader that takes nothing gets no more, is cut after 30 s, and one that takes it up again misses nothing", async () => {
  feed.add(...Array.from({ length: 900 }, (_, n) => `http://a.example/${"x".repeat(1000)}/${n}`));
  const [slow, dead] = [await reader({ takes: false }), await reader({ takes: false })];
  for (let tick = 0; tick < 5; tick += 1) await stream.tick();
  const given = slow.ids().length;

  slow.state.takes = true;
  nowMs = 29_999;
  for (let tick = 0; tick < 5; tick += 1) await stream.tick();
  const early = dead.response.destroyed;
  nowMs = 30_000;
  await stream.tick();

  expect(given).toBeLessThan(900);
  expect(slow.ids()).toEqual(Array.from({ length: 900 }, (_, n) => n + 1));
  expect([early, dead.response.destroyed]).toEqual([false, true]);
  expect(dead.text().length).toBeLessThan(1_000_000);
});

it("a reader for whom nothing fits is told every 15 s how far the feed is", async () => {
  const quiet = await reader({ filter: { ...everyChange, kinds: ["came-back"] } });
  feed.add("http://a.example/1", "http://a.example/2");

  nowMs = 14_999;
  await stream.tick();
  const before = quiet.text();
  nowMs = 15_000;
  await stream.tick();
  await stream.tick();

  expect(before).toBe("retry: 3000\nid: 0\n\n");
  expect(quiet.text()).toBe(`${before}: alive\nid: 2\n\n`);
});

it("a reader whose next changes were let go meanwhile is told so, and its stream ends", async () => {
  feed.add("http://a.example/1", "http://a.example/2", "http://a.example/3");
  feed.removeThrough(2);

  const late = await reader({ at: 1 });

  expect(late.text()).toContain('event: refused\ndata: {"error":{"status":410');
  expect(stream.full).toBe(false);
});

it("readers that are far behind take turns at the table, after those that are not", async () => {
  feed.add(...Array.from({ length: 900 }, (_, n) => `http://a.example/${n}`));
  const behind = await Promise.all(Array.from({ length: 30 }, () => reader({ at: 0 })));
  const readAtFirst = feed.reads;
  const live = await reader({ at: 900 });
  let seenBefore: number[] | null = null;
  const { after } = feed;
  feed.after = async (since, query) => {
    if (since < 900) seenBefore ??= live.ids();
    return await after(since, query);
  };

  feed.add("http://a.example/new");
  await stream.tick();
  for (let tick = 0; tick < 20; tick += 1) await stream.tick();

  expect(readAtFirst).toBeLessThan(30);
  expect(seenBefore).toEqual([901]);
  for (const one of behind) expect(one.ids()).toEqual(Array.from({ length: 901 }, (_, n) => n + 1));
});

it("a reader that cannot be served ends, and nobody with it", async () => {
  const errors: unknown[] = [];
  stream = new ChangeStream({
    feed,
    nowMs: () => nowMs,
    onError: (error) => errors.push(error),
  });
  const domains = () => {
    throw new Error("not readable");
  };
  const broken = await reader({ filter: { ...everyChange, domains } });
  const other = await reader({});
  let isEnded = false;
  broken.response.on("close", () => {
    isEnded = true;
  });

  feed.add("http://a.example/1");
  await stream.tick();

  expect([errors.length, isEnded]).toEqual([1, true]);
  expect(other.ids()).toEqual([1]);
});

it("a stream ends after five minutes, so that its reader is asked again who it is", async () => {
  vi.useFakeTimers();
  const old = await reader({});
  let isEnded = false;
  old.response.on("close", () => {
    isEnded = true;
  });

  vi.advanceTimersByTime(299_999);
  const early = isEnded;
  vi.advanceTimersByTime(1);
  vi.useRealTimers();

  expect([early, isEnded]).toEqual([false, true]);
});

it("there is a bound on readers, and place again when one goes", async () => {
  const readers = await Promise.all(Array.from({ length: mostChangeReaders }, () => reader({})));
  const full = stream.full;

  readers[0]!.response.emit("close");

  expect([full, stream.full]).toEqual([true, false]);
});
