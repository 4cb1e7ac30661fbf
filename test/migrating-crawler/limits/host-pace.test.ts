/** How fast one host may be asked. */
import { describe, expect, it } from "vitest";
import {
  afterAnswer,
  type HostPace,
  newPace,
  notBefore,
  retryAfterSeconds,
  withCrawlDelay,
} from "#crawler/limits/host-pace";

const settings = { floorMs: 1000, responseTimeFactor: 5 };
const minute = 60_000;

function paceAfter(
  pace: HostPace,
  answer: Partial<Parameters<typeof afterAnswer>[1]>,
  nowMs = 0,
  random = 0,
): HostPace {
  return afterAnswer(
    pace,
    { status: 200, tookMs: 0, retryAfterSeconds: null, ...answer },
    { settings, nowMs, random },
  );
}

describe("the delay after an answer", () => {
  it.each([
    ["our floor", newPace, 100, 1000],
    ["five times the answer's time", newPace, 700, 3500],
    ["the host's Crawl-delay", withCrawlDelay(newPace, 10), 700, 10_000],
    ["a minute at most for a slow answer", newPace, 50_000, minute],
    ["an hour at most for a Crawl-delay", withCrawlDelay(newPace, 1e9), 0, 60 * minute],
  ])("is %s", (_what, pace, tookMs, expected) => {
    expect(paceAfter(pace, { tookMs }).notBeforeMs).toBe(expected);
  });

  it("is never less than Retry-After, whatever the status", () => {
    expect(paceAfter(newPace, { status: 200, retryAfterSeconds: 90 }).notBeforeMs).toBe(90_000);
    expect(paceAfter(newPace, { status: 503, retryAfterSeconds: 90 }).notBeforeMs).toBe(90_000);
  });
});

describe("429 and 503 without Retry-After", () => {
  it("back off a minute, doubling", () => {
    const first = paceAfter(newPace, { status: 429 });
    const second = paceAfter(first, { status: 503 }, first.notBeforeMs);

    expect(first.notBeforeMs).toBe(minute);
    expect(second.notBeforeMs - first.notBeforeMs).toBe(2 * minute);
  });

  it("back off a day at most, and up to a quarter more by chance before that", () => {
    let pace = newPace;
    for (let turn = 0; turn < 20; turn++) pace = paceAfter(pace, { status: 503 }, 0);

    expect(pace.notBeforeMs).toBe(86_400_000);
    expect(paceAfter(newPace, { status: 503 }, 0, 0.999).notBeforeMs).toBeGreaterThan(1.24 * minute);
  });

  it("are forgiven after thirty quiet minutes, not before", () => {
    const backedOff = paceAfter(newPace, { status: 429 });

    expect(paceAfter(backedOff, {}, 20 * minute).backOffMs).toBe(minute);
    expect(paceAfter(backedOff, {}, 32 * minute).backOffMs).toBe(0);
  });
});

it("a lease's wait only ever lengthens the pause", () => {
  const pace = notBefore(newPace, 5000);

  expect(notBefore(pace, 3000).notBeforeMs).toBe(5000);
  expect(notBefore(pace, 8000).notBeforeMs).toBe(8000);
});

/** RFC 9110 section 10.2.3 */
describe("Retry-After", () => {
  const now = new Date("2026-11-21T10:00:00Z");

  it.each([
    ["120", 120],
    ["Sat, 21 Nov 2026 10:02:00 GMT", 120],
    ["Sat, 21 Nov 2020 10:02:00 GMT", 0],
    ["999999999", 31_536_000],
    ["soon", null],
    ["-5", null],
    ["", null],
  ])("%s means %s seconds", (text, seconds) => {
    expect(retryAfterSeconds(text, now)).toBe(seconds);
  });
});
