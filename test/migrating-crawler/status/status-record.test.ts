/** A crawler's notes for its administrator: limited, by day, and across restarts. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keepAsked, readAsked } from "#crawler/limits/state-file";
import { Drain } from "#crawler/status/drain";
import {
  contributionOf,
  emptyStory,
  MinuteCounter,
  readStory,
  type Story,
} from "#crawler/status/status-history";
import { StatusRecord } from "#crawler/status/status-record";
import type { CoordinatorWelcome } from "#protocol/coordinator-messages";
import type { FetchResult } from "#protocol/result";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

let home = "";
let now = new Date("2026-11-22T12:00:00Z");
beforeEach(() => {
  home = temporaryFolder("nearcrawl-record-");
  now = new Date("2026-11-22T12:00:00Z");
});
afterEach(() => {
  for (const record of opened.splice(0)) record.close();
});

const opened: StatusRecord[] = [];
function open(lastEnd?: Story["lastEnds"][number]): StatusRecord {
  const record = new StatusRecord({
    kept: { home, warn: () => {} },
    coordinatorHost: "search.example",
    timeZone: "UTC",
    lastEnd,
    now: () => now,
  });
  opened.push(record);
  return record;
}

function result(url: string, outcome: FetchResult["outcome"]): FetchResult {
  const timing = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 };
  const fetchedAt = now.toISOString();
  return {
    ...{ url, fetchedAt, outcome, address: null, timing, wireBytes: 10, bodyBytes: 40 },
    ...{ etag: null, lastModified: null, hostDelayMs: 0, page: null },
  };
}

const failed = (url: string, reason = "nobody there") =>
  result(url, { type: "failed", blame: "network", code: "connect-timeout", reason });

describe("the record", () => {
  it("counts URLs by outcome, and keeps failures with blame and host", () => {
    const record = open();

    record.fetched(result("http://a.example/", { type: "fetched", status: 200, truncated: false }));
    record.fetched(result("http://a.example/x", { type: "refused-by-robots", rule: "Disallow: /" }));
    record.fetched(failed("http://b.example/"));

    expect(record.story.urls).toMatchObject({ urls: 3, fetched: 1, refusedByRobots: 1, failed: 1 });
    expect(record.lastMinute).toMatchObject({ urls: 3 });
    expect(record.story.blames).toEqual({ target: 0, network: 1, crawler: 0, us: 0 });
    expect(record.story.errors).toEqual([
      {
        at: now.toISOString(),
        blame: "network",
        host: "b.example",
        code: "connect-timeout",
        words: "nobody there",
      },
    ]);
  });

  it("survives a restart, and starts its counts over each day while errors stay", () => {
    const first = open();
    first.fetched(failed("http://b.example/"));
    first.close();

    const again = open();
    const sameDay = again.story;
    now = new Date("2026-11-23T00:00:01Z");

    expect(sameDay.blames.network).toBe(1);
    expect(again.story).toMatchObject({ day: "2026-11-23", urls: { urls: 0 }, blames: { network: 0 } });
    expect(again.story.errors).toHaveLength(1);
    expect(contributionOf(again.story)).toEqual({
      days: [{ day: "2026-11-22", urls: 1, pages: 0 }],
      total: { urls: 1, pages: 0 },
    });
  });

  it("keeps the latest hundred errors within the size of its file", () => {
    const record = open();

    for (let i = 0; i < 150; i++) record.fetched(failed(`http://h${i}.example/`, "é".repeat(300)));
    record.close();

    expect(record.story.errors.map(({ host }) => host).slice(0, 2)).toEqual(["h149.example", "h148.example"]);
    expect(readStory(home).errors).toHaveLength(100);
    expect(readStory(home).blames.network).toBe(150);
  });

  it("records a lost link once, however often the next attempts fail in the same way", () => {
    const record = open();

    for (let i = 0; i < 3; i++) record.down("connect ECONNREFUSED");

    expect(record.story.errors).toMatchObject([{ host: "search.example", code: "link-down" }]);
    expect(record.downReason).toBe("no link to the coordinator: connect ECONNREFUSED");
  });

  it("records since when the coordinator is unreachable, however often and for whatever reason attempts fail", () => {
    const record = open();
    const atStart = record.notConnectedSince;
    record.welcomed({} as CoordinatorWelcome);
    const whileConnected = record.notConnectedSince;
    now = new Date("2026-11-22T13:00:00Z");
    record.down("nothing heard from the coordinator for 25 s");
    now = new Date("2026-11-22T14:00:00Z");
    record.down("connect ECONNREFUSED");

    expect([atStart, whileConnected]).toEqual([new Date("2026-11-22T12:00:00Z"), null]);
    expect(record.notConnectedSince).toEqual(new Date("2026-11-22T13:00:00Z"));
  });

  it("keeps how previous processes ended, each end once", () => {
    const end = { at: "2026-11-22T11:00:00.000Z", reason: "it was ended by SIGKILL" };

    open(end).close();
    open(end).close();

    expect(readStory(home).lastEnds).toEqual([end]);
  });

  it("starts over where its file is damaged", () => {
    writeFileSync(join(home, "status.json"), '{"day":7}');

    expect(readStory(home)).toEqual(emptyStory);
    expect(open().story.errors).toEqual([]);
    expect(readFileSync(join(home, "status.json"), "utf8")).toContain("7");
  });

  it("forgets a URL of the last minute after a minute", () => {
    const minute = new MinuteCounter();
    minute.count("fetched", 1000);
    minute.count("failed", 30_000);

    expect(minute.counts(59_000)).toMatchObject({ urls: 2, fetched: 1, failed: 1 });
    expect(minute.counts(61_500)).toMatchObject({ urls: 1, fetched: 0, failed: 1 });
    expect(minute.counts(200_000)).toMatchObject({ urls: 0 });
  });
});

describe("a drain", () => {
  it("continues after a restart, leaves once when nothing is left, and ends", async () => {
    keepAsked("drain", home, "the machine goes away");
    let [isEmpty, left] = [false, 0];
    const drain = new Drain({ home, isEmpty: () => isEmpty, onDrained: () => left++ });
    const asked = drain.asked;

    isEmpty = true;
    await until(() => left > 0, 3000);

    expect(asked).toMatchObject({ reason: "the machine goes away" });
    expect(left).toBe(1);
    expect(drain.asked).toBeNull();
    expect(readAsked("drain", home)).toBeNull();
  });

  it("does not begin from an invalid file, because leaving is final", () => {
    writeFileSync(join(home, "draining.json"), "yes");

    expect(readAsked("drain", home)).toBeNull();
  });
});
