import { describe, expect, it } from "vitest";
import { isFailure } from "#coordinator/crawl/batch/visit";
import { defaultRecrawlSettings, isGone, nextFetchAt } from "#coordinator/crawl/recrawl/visit-findings";
import type { FetchOutcome } from "#protocol/result";

const now = new Date("2026-03-01T12:00:00Z");
const hour = 3600;
const settings = { ...defaultRecrawlSettings, intervalSeconds: 6 * hour };

function waitSeconds(outcome: FetchOutcome, failures = 0): number {
  return (nextFetchAt({ now, outcome, failures }, settings).getTime() - now.getTime()) / 1000;
}

const httpError = (status: number, retryAfterSeconds: number | null = null): FetchOutcome => ({
  type: "http-error",
  status,
  retryAfterSeconds,
});
const failed: FetchOutcome = {
  type: "failed",
  blame: "network",
  code: "ECONNRESET",
  reason: "connection reset",
};

describe("after a success the next fetch is one interval later", () => {
  it.each<FetchOutcome>([
    { type: "fetched", status: 200, truncated: false },
    { type: "unchanged", status: 304 },
    { type: "redirected", status: 301, location: "http://example.com/" },
    { type: "unsupported", status: 200, contentType: "image/png" },
  ])("$type", (outcome) => {
    expect(waitSeconds(outcome)).toBe(6 * hour);
    expect(waitSeconds(outcome, 5)).toBe(6 * hour);
    expect(isFailure(outcome)).toBe(false);
  });
});

describe("after a refusal the next fetch is a day later", () => {
  it.each<FetchOutcome>([
    { type: "refused-by-robots", rule: "Disallow: /" },
    { type: "refused-address", address: "10.0.0.1", block: "10.0.0.0/8" },
    httpError(401),
    httpError(403),
    httpError(404),
  ])("%j", (outcome) => {
    expect(waitSeconds(outcome)).toBe(24 * hour);
  });
});

describe("after trouble that may pass", () => {
  it.each([
    [0, 60],
    [1, 120],
    [2, 240],
    [10, 61_440],
    [11, 86_400],
    [4000, 86_400],
  ])("and %i failures before it, the wait is %i s", (failures, seconds) => {
    expect(waitSeconds(failed, failures)).toBe(seconds);
    expect(waitSeconds(httpError(503), failures)).toBe(seconds);
  });
});

// RFC 9110 section 10.2.3
describe("Retry-After", () => {
  it("is waited for when it is longer than our own wait", () => {
    expect(waitSeconds(httpError(429, 7200))).toBe(7200);
    expect(waitSeconds(httpError(503, 10 * 86_400), 3)).toBe(10 * 86_400);
    expect(waitSeconds(httpError(403, 2 * 86_400))).toBe(2 * 86_400);
  });

  it("does not shorten our own wait", () => {
    expect(waitSeconds(httpError(429, 1), 2)).toBe(240);
  });
});

describe("a URL that is missing", () => {
  it("is gone the third time in a row, and looked at again a month later", () => {
    const missing = [0, 1, 2].map((failures) => isGone({ now, outcome: httpError(404), failures }, settings));

    expect(missing).toEqual([false, false, true]);
    expect(waitSeconds(httpError(410), 2)).toBe(30 * 86_400);
  });

  it("is left alone for a month where the site wants to be paid, the first time already", () => {
    expect(isGone({ now, outcome: httpError(402) }, settings)).toBe(true);
    expect(waitSeconds(httpError(402), 0)).toBe(30 * 86_400);
  });

  it("is not gone for any other failure, however often", () => {
    expect(isGone({ now, outcome: failed, failures: 100 }, settings)).toBe(false);
    expect(isGone({ now, outcome: httpError(500), failures: 100 }, settings)).toBe(false);
  });
});

it("the same attempt always gives the same time", () => {
  expect(nextFetchAt({ now, outcome: failed }, settings)).toEqual(
    nextFetchAt({ now, outcome: failed }, settings),
  );
});
