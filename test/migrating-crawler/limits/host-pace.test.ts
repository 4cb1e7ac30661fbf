import { describe, expect, it } from "vitest";
import { retryAfterSeconds } from "#core/foreign-dates";
import {
  afterAnswer,
  type HostPace,
  newPace,
  notBefore,
  paceReport,
  withCrawlDelay,
  withReport,
} from "#crawler/limits/host-pace";
import { inZone } from "../../support/in-zone.ts";

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
    expect(paceAfter(newPace, { status: 429, retryAfterSeconds: 200_000 }).notBeforeMs).toBe(200_000_000);
  });
});

describe("429 and 503 without Retry-After", () => {
  it("back off a minute, doubling", () => {
    const first = paceAfter(newPace, { status: 429 });
    const second = paceAfter(first, { status: 503 }, first.notBeforeMs);

    expect(first.notBeforeMs).toBe(minute);
    expect(second.notBeforeMs - first.notBeforeMs).toBe(2 * minute);
  });

  it("back off a day at most, with up to a quarter more at random before that", () => {
    let pace = newPace;
    for (let turn = 0; turn < 20; turn++) pace = paceAfter(pace, { status: 503 }, 0);

    expect(pace.notBeforeMs).toBe(86_400_000);
    expect(paceAfter(newPace, { status: 503 }, 0, 0.999).notBeforeMs).toBeGreaterThan(1.24 * minute);
  });

  it("start after a good answer at half of the last effective pause, for a day", () => {
    let pace = newPace;
    for (let turn = 0; turn < 4; turn++) pace = paceAfter(pace, { status: 429 });
    const better = paceAfter(pace, {}, pace.notBeforeMs);

    expect(pace.backOffMs).toBe(8 * minute);
    expect(paceAfter(better, { status: 429 }, 60 * minute).backOffMs).toBe(4 * minute);
    expect(paceAfter(better, { status: 429 }, 25 * 60 * minute).backOffMs).toBe(minute);
  });

  it("lower the rate once in a row, however many follow, even with silence between them", () => {
    const first = paceAfter(newPace, { status: 429 });
    let pace = first;
    for (const status of [429, 503, null, null, 429]) pace = paceAfter(pace, { status }, pace.notBeforeMs);

    expect(first.rate).toMatchObject({ perHour: 1800, limitedBy: "refused", refusedPerHour: 3600 });
    expect(pace.rate.perHour).toBe(1800);
  });

  it("are consecutive even if robots.txt is answered between them", () => {
    const first = paceAfter(newPace, { status: 429 });
    const rules = paceAfter(first, { isSmall: true }, first.notBeforeMs);

    expect(paceAfter(rules, { status: 429 }, rules.notBeforeMs).backOffMs).toBe(2 * minute);
  });

  it("with a Retry-After that does not help back off further than it says", () => {
    const first = paceAfter(newPace, { status: 429, retryAfterSeconds: 1 });
    const second = paceAfter(first, { status: 429, retryAfterSeconds: 1 }, first.notBeforeMs);
    const third = paceAfter(second, { status: 429, retryAfterSeconds: 1 }, second.notBeforeMs);

    const waits = [
      first.notBeforeMs,
      second.notBeforeMs - first.notBeforeMs,
      third.notBeforeMs - second.notBeforeMs,
    ];
    expect(waits).toEqual([2000, 2 * minute, 4 * minute]);
  });
});

describe("a host that answers", () => {
  /** The delays after answers that took this long, from a host that usually takes 300 ms. */
  function delaysFor(...tookMs: number[]): number[] {
    let pace: HostPace = { ...newPace, usualMs: 300, answers: 10, lastMs: 300, endedAtMs: 1 };
    return tookMs.map((one) => {
      const nowMs = Math.max(pace.notBeforeMs, 1) + one;
      pace = paceAfter(pace, { tookMs: one }, nowMs);
      return Math.round(pace.notBeforeMs - nowMs);
    });
  }

  it("several times slower than usual, twice in a row, is asked half as often, and again when that does not help", () => {
    const [once, twice, third, , fifth, sixth] = delaysFor(...Array<number>(6).fill(1800));

    expect([once, third]).toEqual([9000, twice]);
    expect(twice).toBe(2 * (9000 + 1800) - 1800);
    expect(sixth).toBeGreaterThan(1.8 * fifth!);
  });

  it("slower and slower is finally asked once a minute, and not less often", () => {
    const delays = delaysFor(
      ...Array.from({ length: 200 }, (_, turn) => Math.min(60_000, 300 * 1.1 ** turn)),
    );

    expect(Math.max(...delays)).toBeLessThanOrEqual(minute);
  });

  it("slowly once in a while is not slowed down", () => {
    expect(delaysFor(1800, 300, 1800, 300)).toEqual([9000, 1500, 9000, 1500]);
  });

  it("as usual again is only gradually asked as fast as before", () => {
    const delays = delaysFor(1800, 1800, ...Array<number>(30).fill(300)).slice(2);

    expect(delays[0]).toBeGreaterThan(15_000);
    expect(delays).toEqual([...delays].sort((a, b) => b - a));
    expect(delays.at(-1)).toBe(1500);
  });

  it("slowly all the time has a new usual time", () => {
    expect(delaysFor(...Array<number>(80).fill(1800)).at(-1)).toBe(9000);
  });

  it("robots.txt quickly is not assumed to answer pages quickly", () => {
    let pace = newPace;
    for (let turn = 0; turn < 5; turn++) pace = paceAfter(pace, { tookMs: 5, isSmall: true });
    for (let turn = 0; turn < 2; turn++) pace = paceAfter(pace, { tookMs: 400 });

    expect(pace).toMatchObject({ notBeforeMs: 2000, rate: { perHour: 0 } });
  });
});

describe("a host that does not answer", () => {
  it("rests a minute from the second failure on, doubling to an hour, until it answers", () => {
    const waits: number[] = [];
    let pace = newPace;
    for (let turn = 0; turn < 10; turn++) {
      pace = paceAfter(pace, { status: null, tookMs: 10 });
      waits.push(pace.notBeforeMs / minute);
    }
    const answered = paceAfter(paceAfter(pace, {}), { status: null });

    expect(waits.map((wait) => Math.round(wait))).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    expect(answered.notBeforeMs).toBe(2000);
    expect(answered.rate).toMatchObject({ limitedBy: "silent", perHour: 1800 });
  });
});

describe("a host's pace that moves to another crawler", () => {
  const known = { crawlDelayMs: 5000, backOffMs: 120_000, backedOffMsAgo: minute, usualMs: 400 };

  const at = (nowMs: number) => ({ settings, nowMs });
  const tolerated = {
    ...{ perHour: 600, limitedBy: "refused" as const, refusedPerHour: 900 },
    ...{ refusedMsAgo: 5 * minute, saidMsAgo: minute },
  };

  it("is the same there", () => {
    const there = withReport(newPace, known, at(10 * minute));

    expect(paceReport(there, 10 * minute)).toEqual(known);
    expect(paceReport(newPace, 0)).toBeNull();
  });

  it("never makes the pace less strict", () => {
    const here = { ...withCrawlDelay(newPace, 8), backOffMs: 240_000, backedOffAtMs: 9 * minute };

    const there = withReport(here, known, at(10 * minute));

    expect(there).toMatchObject({ crawlDelayMs: 8000, backOffMs: 240_000, backedOffAtMs: 9 * minute });
  });

  it("expires there too", () => {
    const forgiven = withReport(
      newPace,
      { ...known, backedOffMsAgo: 25 * 60 * minute },
      at(26 * 60 * minute),
    );

    expect(forgiven.backOffMs).toBe(0);
  });

  it("includes the tolerated rate and its last refusal", () => {
    const there = withReport(newPace, { ...known, tolerated }, at(10 * minute));

    expect(paceReport(there, 10 * minute)!.tolerated).toEqual({ ...tolerated, saidMsAgo: 0 });
    expect(paceAfter({ ...there, crawlDelayMs: 0 }, {}, 10 * minute).notBeforeMs).toBeGreaterThan(
      (15 * minute) / 10,
    );
  });

  it("includes no rate that is higher, or older than this crawler's last request", () => {
    const lower = paceAfter(paceAfter(newPace, { status: 429 }), { status: 429 });
    const own = { ...lower, rate: { ...lower.rate, perHour: 300 } };
    const since = { ...newPace, endedAtMs: 9.5 * minute };

    expect(withReport(own, { ...known, tolerated }, at(10 * minute)).rate.perHour).toBe(300);
    expect(withReport(since, { ...known, tolerated }, at(10 * minute)).rate.perHour).toBe(0);
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
    ["999999999999", 31_536_000],
    ["120", 120],
    ["Sat, 21 Nov 2026 10:02:00 GMT", 120],
    ["Sat, 21 Nov 2020 10:02:00 GMT", 0],
    ["999999999", 31_536_000],
    ["soon", null],
    ["-5", null],
    ["9".repeat(10_000), null],
    [String(366 * 86_400), 31_536_000],
    ["", null],
    ["  600 ", 600],
    ["120.5", 121],
    ["Saturday, 21-Nov-26 10:10:00 GMT", 600],
    ["Sat, 21 Nov 2026 12:10:00 +0200", 600],
    ["2026-11-21T10:10:00.000Z", 600],
    ["May", null],
    ["10 minutes", null],
    ["600s", null],
    ["+600", null],
    ["0x258", null],
    ["Infinity", null],
    ['"600"', null],
    ["600, 60", null],
    ["Tue, 31 Feb 2026 10:00:00 GMT", null],
  ])("%s means %s seconds", (text, seconds) => {
    expect(retryAfterSeconds(text, now)).toBe(seconds);
  });

  it.each(["UTC", "Asia/Tokyo", "America/New_York"])(
    "without a zone is UTC on a machine in %s",
    async (zone) => {
      await inZone(zone, () => {
        expect(retryAfterSeconds("Sat Nov 21 10:10:00 2026", now)).toBe(600);
        expect(retryAfterSeconds("Sat, 21 Nov 2026 10:10:00", now)).toBe(600);
        expect(retryAfterSeconds("2026-11-21T10:10:00", now)).toBe(600);
      });
    },
  );

  it("as a Unix time is not a wait of decades", () => {
    expect(retryAfterSeconds(String(now.getTime() / 1000 + 600), now)).toBe(600);
    expect(retryAfterSeconds(String(now.getTime() + 600_000), now)).toBe(600);
    expect(retryAfterSeconds(String(now.getTime() / 1000 - 600), now)).toBe(0);
  });
});
