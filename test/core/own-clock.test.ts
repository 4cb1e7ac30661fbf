/** The time by which a coordinator decides while its machine's clock jumps, sleeps, or is wrong from the start. */
import { beforeEach, describe, expect, it } from "vitest";
import type { CrawlerId } from "#core/ids";
import { doubtfulStart, impossibleTime, OwnClock } from "#core/own-clock";

const startMs = Date.parse("2026-11-28T12:00:00Z");
const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000];

let passedMs: number;
let offMs: number;
let sleptMs: number;
let told: string[];
let clock: OwnClock;
beforeEach(() => {
  [passedMs, offMs, sleptMs, told] = [0, 0, 0, []];
  clock = new OwnClock(
    {
      wall: () => new Date(startMs + passedMs + sleptMs + offMs),
      steadyMs: () => 1000 + passedMs,
      uptimeMs: () => 5000 + passedMs + sleptMs,
    },
    (fault, jumpedMs) => told.push(fault === null ? `right, ${jumpedMs / hourMs} h` : fault.words),
  );
});

const pass = (ms: number) => {
  passedMs += ms;
  clock.now();
};
const secondsPassed = () => (clock.now().getTime() - startMs) / 1000;
/** Crawlers with correct clocks, this many ms ahead of the machine's at its start. */
const hear = (...aheadMs: number[]) => {
  for (const [at, ahead] of aheadMs.entries())
    clock.hearCrawler((at + 1) as CrawlerId, new Date(startMs + passedMs + ahead));
};

describe.each([
  ["ahead", dayMs, "jumped ahead by 24 hours"],
  ["back", -dayMs, "went back by 24 hours"],
  ["to 1970", -startMs, "went back by 20,786 days"],
  ["to 2107", Date.UTC(2107, 0, 1) - startMs, "jumped ahead by 29,253 days"],
])("a clock that jumps %s", (_, jump, words) => {
  it("is not followed, is reported, and ends as soon as the jump is reverted", () => {
    pass(minuteMs);
    offMs = jump;
    pass(44_000);
    expect(secondsPassed()).toBe(104);
    expect(clock.fault).toEqual({
      words: `this coordinator's own clock ${words}`,
      since: new Date(startMs + 104_000),
    });
    offMs = 0;
    pass(1000);
    expect(secondsPassed()).toBe(105);
    expect(clock.fault).toBe(null);
    expect(told).toEqual([`this coordinator's own clock ${words}`, "right, 0 h"]);
  });
});

it("the clock follows NTP slews, and a machine that slept", () => {
  for (let second = 0; second < 100; second += 1) {
    offMs += 500;
    pass(1000);
  }
  sleptMs = 8 * hourMs;
  pass(1000);
  expect(secondsPassed()).toBe(101 + 50 + 8 * 3600);
  sleptMs += 8 * hourMs;
  offMs += dayMs;
  pass(1000);
  expect(secondsPassed()).toBe(102 + 50 + 16 * 3600);
  expect(clock.fault?.words).toContain("jumped ahead by 24 hours");
  expect(told).toHaveLength(1);
});

it("a jump is followed once two thirds of the crawlers have the new time, and not while they have the old one", () => {
  offMs = 400 * dayMs;
  pass(1000);
  hear(0, 0, 0);
  pass(hourMs);
  hear(0, 0, 0);
  expect(secondsPassed()).toBe(3601);

  hear(0, 400 * dayMs, 400 * dayMs);
  expect(secondsPassed()).toBe(3601);
  hear(400 * dayMs + 900, 400 * dayMs, 400 * dayMs);
  expect(secondsPassed()).toBe(400 * 86_400 + 3601);
  expect(clock.fault).toBe(null);
  expect(told.at(-1)).toBe("right, 9600 h");
});

it("a jump that no crawler can judge is followed after its own length, within ten minutes; one of over a day never is", () => {
  offMs = 5000;
  pass(0);
  pass(9999);
  expect(clock.fault?.words).toBe("this coordinator's own clock jumped ahead by 5 s");
  pass(1);
  expect(clock.fault).toBe(null);
  offMs += dayMs;
  pass(0);
  pass(599_999);
  expect(secondsPassed()).toBeCloseTo(15 + 600, 2);
  pass(1);
  expect(secondsPassed()).toBe(86_400 + 15 + 600);
  offMs += dayMs + 1000;
  pass(0);
  pass(30 * dayMs);
  expect(secondsPassed()).toBe(86_400 + 15 + 600 + 30 * 86_400);
  expect(clock.fault?.words).toContain("jumped ahead by 24 hours");
});

it("where most crawlers differ the same way, the own clock is reported, and a correction is followed at once", () => {
  hear(-dayMs);
  expect(clock.fault).toBe(null);
  hear(-dayMs, -dayMs + 500, 70_000, -dayMs);
  expect(clock.fault?.words).toBe(
    "this coordinator's own clock is 24 hours ahead of those of 3 of 4 crawlers",
  );
  offMs = -dayMs;
  pass(2000);
  hear(-dayMs, -dayMs, -dayMs, 70_000 - dayMs);
  expect(clock.fault).toBe(null);
  expect(secondsPassed()).toBe(2 - 86_400);
  expect(told.at(-1)).toBe("right, -24 h");
});

it("one crawler, two that differ each their own way, and those not heard for two minutes prove nothing", () => {
  hear(-dayMs);
  clock.forgetCrawler(1 as CrawlerId);
  hear(hourMs, -hourMs);
  expect(clock.fault).toBe(null);
  hear(hourMs, hourMs);
  expect(clock.fault).not.toBe(null);
  pass(121_000);
  expect(clock.fault).toBe(null);
});

it("the database's clock is compared beyond the answer's duration; the crawlers' clocks decide which one is wrong", () => {
  clock.hearDatabase(startMs + 4900, 2000);
  expect(clock.fault).toBe(null);
  clock.hearDatabase(startMs + 20_000, 10);
  expect(clock.fault?.words).toBe("this coordinator's own clock is 20 s behind the database server's");
  hear(0, 0);
  expect(clock.fault?.words).toBe(
    "the clocks differ: this coordinator's is 20 s behind the database server's, and 2 of 2 crawlers agree with the coordinator",
  );
  clock.hearDatabase(startMs, 10);
  expect(clock.fault).toBe(null);
});

it("a clock that is doubted at a start is confirmed by most of the crawlers, or after a day", () => {
  expect(clock.isProven).toBe(true);
  clock.doubt();
  hear(0);
  pass(hourMs);
  expect(clock.isProven).toBe(false);
  hear(0, 500);
  expect(clock.isProven).toBe(true);
  clock.doubt();
  pass(dayMs);
  expect(clock.isProven).toBe(true);
});

it("a start is refused in impossible years, long before the last recorded minute, and more than a year after it", () => {
  expect(impossibleTime(new Date(0))).toContain("this machine's clock shows 1970-01-01, which cannot be");
  expect(impossibleTime(new Date("2107-01-01T00:00:00Z"))).toContain("2107-01-01");
  expect(impossibleTime(new Date(startMs))).toBe(null);
  const at = (aheadMs: number) => doubtfulStart(new Date(startMs + aheadMs), new Date(startMs));
  expect([at(-2 * dayMs), at(366 * dayMs), doubtfulStart(new Date(startMs), null)]).toEqual([
    null,
    null,
    null,
  ]);
  expect(at(-2 * dayMs - 1)).toContain(
    "shows 2026-11-26, 2 days before the last minute that was written (2026-11-28)",
  );
  expect(at(366 * dayMs + 1)).toContain("--clock-is-right");
});
