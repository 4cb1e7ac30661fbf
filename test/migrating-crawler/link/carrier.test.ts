import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { Carrier } from "#crawler/link/carrier";
import { Spool, type SpooledResult } from "#crawler/spool/spool";
import { packResult } from "#protocol/packed/message-frames";
import { unpackMessage } from "#protocol/packed/unpack-message";
import {
  type FetchOutcome,
  type FetchResult,
  failedResult,
  fetchResultSchema,
  type PageExtract,
} from "#protocol/result";
import { generatedResults } from "../../protocol/generated-results.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** Imitates the link for the carrier: accepts everything while up and records the order. */
class RecordingLink {
  isUp = true;
  sent: number[] = [];

  sendResult({ sequence }: { sequence: number }): boolean {
    if (!this.isUp) return false;
    this.sent.push(sequence);
    return true;
  }
}

const notFound: FetchResult = {
  ...failedResult({ url: "http://site.example/missing", fetchedAt: "2026-01-01T00:00:00.000Z" }, ""),
  outcome: { type: "http-error", status: 404, retryAfterSeconds: null },
};

let home: string;
let spool: Spool;
let link: RecordingLink;
let carrier: Carrier;

beforeEach(() => {
  home = temporaryFolder("nearcrawl-carrier-");
  spool = new Spool({ home, maxBytes: 20_000_000 });
  link = new RecordingLink();
  carrier = new Carrier({ spool, link, log: quietLog });
});

afterEach(() => spool.close());

describe("the carrier", () => {
  it("sends results in order, each once per session", () => {
    carrier.onWelcome(0);

    for (let count = 0; count < 3; count += 1) carrier.keep("1", notFound);

    expect(link.sent).toEqual([1, 2, 3]);
  });

  it("starts a new session at the first result that the coordinator lacks", () => {
    carrier.onWelcome(0);
    for (let count = 0; count < 5; count += 1) carrier.keep("1", notFound);
    link.isUp = false;
    carrier.keep("1", notFound);
    link.sent = [];
    link.isUp = true;

    carrier.onWelcome(2);

    expect(link.sent).toEqual([3, 4, 5, 6]);
  });

  it("settles a lease when its last result is acknowledged", async () => {
    carrier.onWelcome(0);
    carrier.keep("7", notFound);
    carrier.keep("7", notFound);
    let settled = false;
    const waiting = carrier.settled("7").then(() => {
      settled = true;
    });

    carrier.onAcknowledge(1);
    await Promise.resolve();
    const early = settled;
    carrier.onAcknowledge(2);
    await waiting;

    expect([early, settled]).toEqual([false, true]);
  });

  it("reports results that have waited for minutes without acknowledgement", () => {
    const later = (minutes: number) => performance.now() + minutes * 60_000 + 1000;
    carrier.onWelcome(0);
    const idle = carrier.stuck(later(60));
    carrier.keep("1", notFound);
    carrier.keep("1", notFound);

    const early = carrier.stuck(later(4));
    const late = carrier.stuck(later(7));
    carrier.onAcknowledge(2);

    expect([idle, early]).toEqual(["", ""]);
    expect(late).toBe("nothing was acknowledged for 7 minutes; 2 results wait");
    expect(carrier.stuck(later(60))).toBe("");
  });

  it("sends times in tenths of a millisecond", () => {
    const timing = { dnsMs: 1.23456, connectMs: null, tlsMs: 0.04, firstByteMs: 99.96, totalMs: 100.0499 };

    carrier.keep("1", { ...notFound, timing });
    const kept = unpackMessage(spool.read(1)!.packed) as { result: FetchResult };

    expect(kept.result.timing).toEqual({
      dnsMs: 1.2,
      connectMs: null,
      tlsMs: 0,
      firstByteMs: 100,
      totalMs: 100,
    });
  });
});

describe("a result that the coordinator would reject", () => {
  const { page } = generatedResults({ count: 1, hosts: 1, seed: 1 })[0]!.result;
  const fetched = { ...notFound, outcome: { type: "fetched", status: 200, truncated: false }, page } as const;
  const withPage = (differences: Partial<PageExtract>) => ({
    ...fetched,
    page: { ...page!, ...differences },
  });
  const lists = { kind: "sitemap", links: Array(4200).fill(linkTo("x".repeat(2000))) } as const;
  const impossible: readonly (readonly [string, FetchResult, RegExp])[] = [
    [
      "a status below 100",
      { ...notFound, outcome: { ...notFound.outcome, status: 0 } as FetchOutcome },
      /status/,
    ],
    ["a header that is too long", { ...notFound, etag: "x".repeat(501) }, /etag/],
    ["an invalid time", { ...notFound, timing: { ...notFound.timing, totalMs: Number.NaN } }, /totalMs/],
    ["a negative delay", { ...notFound, hostDelayMs: -1 }, /hostDelayMs/],
    ["an invalid language", withPage({ language: "ελ" }), /language/],
    ["an invalid day", withPage({ modifiedAt: "2026-1-1" }), /modifiedAt/],
    ["an oversized message", withPage(lists), /over the limit/],
    ["too many links", withPage({ links: Array(10_001).fill(linkTo("x")) }), /links/],
  ];
  const kept = (sequence: number) =>
    (unpackMessage(spool.read(sequence)!.packed) as { result: FetchResult }).result;

  it.each(impossible)("with %s is stored as a failure of its URL", (_what, result, reason) => {
    carrier.keep("7", result);

    expect(fetchResultSchema.safeParse(kept(1)).success).toBe(true);
    expect(kept(1)).toMatchObject({
      url: notFound.url,
      fetchedAt: notFound.fetchedAt,
      outcome: { type: "failed", code: "bad-result", reason: expect.stringMatching(reason) },
      page: null,
    });
  });

  it("is sent as a failure when an earlier release stored it; valid ones stay", () => {
    for (const [, result] of impossible.slice(0, 2)) spool.append("7", packResult("7", result));
    spool.append("7", packResult("7", notFound));
    spool.append("7", { text: "\n{no shape", numbers: Buffer.alloc(0), links: null });
    spool.close();
    spool = new Spool({ home, maxBytes: 1_000_000 });
    const shipped: unknown[] = [];
    const sendResult = ({ packed }: SpooledResult) => shipped.push(unpackMessage(packed)) > 0;
    carrier = new Carrier({ spool, link: { isUp: true, sendResult }, log: quietLog });

    carrier.onWelcome(0);

    const bad = { url: notFound.url, outcome: { code: "bad-result" } };
    expect(shipped).toMatchObject([
      { leaseId: "7", result: bad },
      { leaseId: "7", result: bad },
      { leaseId: "7", result: { url: notFound.url, outcome: notFound.outcome } },
      { leaseId: "0", result: { outcome: { code: "bad-result" } } },
    ]);
    carrier.onAcknowledge(4);
    expect(spool.waiting).toBe(0);
  });

  it("is not a sitemap of 10,000 URLs with dates and change frequencies", () => {
    const dated = { modifiedAt: "2026-01-01", changeFrequency: "daily" } as const;
    const links = Array.from({ length: 10_000 }, (_, at) => ({ ...linkTo(String(at)), ...dated }));

    carrier.keep("7", withPage({ kind: "sitemap", links }));

    expect(kept(1).page?.links).toEqual(links);
  });
});

function linkTo(path: string) {
  return { url: `http://site.example/${path}`, anchor: "", nofollow: false };
}
