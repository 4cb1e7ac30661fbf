/** The host's limits together: what may begin, what is reported, and what survives a restart. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { Governor, type GovernorSettings, WorkPace } from "#crawler/limits/governor";
import { type CrawlerLimits, limitsSchema } from "#crawler/settings/limits-config";
import { atEnd } from "../../support/at-end.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

function freshHome(): string {
  return temporaryFolder("nearcrawl-governor-");
}

const lateInTheEvening = new Date("2026-11-21T23:00:00Z");

type Limits = z.input<typeof limitsSchema>;

function limitsOf(limits: Limits): CrawlerLimits {
  return limitsSchema.parse({ pagesPerDay: 100, concurrentHosts: 4, timeZone: "UTC", ...limits });
}

function governor(
  home: string,
  limits: Limits,
  settings: Partial<GovernorSettings> & { warn?: (fields: object, words: string) => void } = {},
): Governor {
  const { warn = () => {}, ...more } = settings;
  const made = new Governor({
    limits: limitsOf(limits),
    kept: { home, warn },
    now: () => lateInTheEvening,
    ...more,
  });
  atEnd(() => made.close());
  return made;
}

const soon = () => ({ signal: new AbortController().signal, endsAtMs: Date.now() + 60_000 });

describe("the governor", () => {
  it("stops at the day's pages, also after a restart, and starts over on the next day", async () => {
    const home = freshHome();
    const today = governor(home, { pagesPerDay: 2 });
    (await today.admit(soon()))?.end();
    (await today.admit(soon()))?.end();
    today.close();

    const restarted = governor(home, { pagesPerDay: 2 });
    const tomorrow = governor(home, { pagesPerDay: 2 }, { now: () => new Date("2026-11-22T00:00:01Z") });

    expect(restarted.mayFetch()).toBe(false);
    expect(restarted.freeHosts(0)).toBe(0);
    expect(restarted.holdingBack(0)).toEqual(["the day's 2 pages are used up"]);
    expect(tomorrow.mayFetch()).toBe(true);
  });

  it("stops at the day's bytes, and says once that running requests must be aborted", () => {
    const one = governor(freshHome(), { bytesPerDay: 1000 });
    const told: string[] = [];
    one.onSpent = (reason) => void told.push(reason);

    one.takeBytes(600);
    one.takeBytes(600);
    one.takeBytes(1);

    expect(one.mayFetch()).toBe(false);
    expect(told).toEqual(["the day's 1000 bytes are used up"]);
  });

  it("delays pieces that exceed the rate, and reports how many wait", async () => {
    const one = governor(freshHome(), { kilobytesPerSecond: 1000 });

    const waiting = one.takeBytes(150 * 1024);

    expect(waiting).not.toBeNull();
    expect(one.holdingBack(0)).toEqual(["1 downloads wait for the rate of 1000 KB/s"]);
    await waiting;
    expect(one.holdingBack(0)).toEqual([]);
  });

  it("releases everything that waits when it is closed", async () => {
    const one = governor(freshHome(), { kilobytesPerSecond: 1 });
    const waiting = one.takeBytes(10_000 * 1024);

    one.close();
    await waiting;

    expect(one.holdingBack(0)).toEqual([]);
  });

  it("counts free places for hosts", () => {
    const one = governor(freshHome(), {});

    expect(one.freeHosts(1)).toBe(3);
    expect(one.freeHosts(4)).toBe(0);
    expect(one.holdingBack(4)).toEqual(["all 4 places for hosts are taken"]);
  });

  it("stays paused across a restart until it is resumed", () => {
    const home = freshHome();
    governor(home, {}).pause("by the administrator");

    const restarted = governor(home, {});
    const words = restarted.silence();
    restarted.resume();

    expect(words).toMatch(/^paused since 20\d\d-.*: by the administrator$/);
    expect([restarted.paused, restarted.silence()]).toEqual([null, ""]);
    // An invalid file also pauses, which is the safe side.
    writeFileSync(join(home, "paused.json"), "yes");
    expect(governor(home, {}).silence()).toContain(`by ${home}/paused.json`);
  });

  it("contacts nobody outside its hours", () => {
    const one = governor(freshHome(), { hours: { saturday: "08:00-10:00" } });

    expect(one.silence()).toBe("outside the hours that are set for crawling until Sat 08:00");
  });

  it("applies lowered and raised limits at once", async () => {
    const one = governor(freshHome(), { kilobytesPerSecond: 1, bytesPerDay: 1e9 });
    const waiting = one.takeBytes(100 * 1024);

    one.apply(limitsOf({ kilobytesPerSecond: null, bytesPerDay: 1000, concurrentHosts: 2 }));
    await waiting;

    expect(one.stop()).toBe("the day's 1000 bytes are used up");
    one.apply(limitsOf({ bytesPerDay: 1e9, concurrentHosts: 2 }));
    expect([one.stop(), one.freeHosts(1)]).toEqual(["", 1]);
  });

  it("begins no request while it is paused, and releases those that wait", async () => {
    const one = governor(freshHome(), { kilobytesPerSecond: 1 });
    (await one.admit(soon()))?.end();
    void one.takeBytes(100 * 1024);
    const waiting = one.admit(soon());

    one.pause("for a while");

    expect(await waiting).toBeNull();
  });

  it("reports every limit with its use and when it starts over", () => {
    const one = governor(freshHome(), { bytesPerDay: 5000, bytesPerMonth: 9000, kilobytesPerSecond: 10 });

    one.takeBytes(1234);
    const usage = new Map(one.usage(3).map((each) => [each.limit, each]));

    expect(usage.get("bytesPerDay")).toEqual({
      limit: "bytesPerDay",
      unit: "bytes",
      used: 1234,
      cap: 5000,
      resetsAt: new Date("2026-11-22T00:00:00Z"),
      holdingBack: "",
    });
    expect(usage.get("bytesPerMonth")).toMatchObject({
      used: 1234,
      resetsAt: new Date("2026-12-01T00:00:00Z"),
    });
    expect(usage.get("concurrentHosts")).toMatchObject({ used: 3, cap: 4 });
    const names =
      "pause pagesPerDay bytesPerDay bytesPerMonth kilobytesPerSecond concurrentHosts openConnections";
    expect([...usage.keys()].join(" ")).toBe(`${names} cpuShare memoryBytes diskBytes hours onlyWhenIdle`);
  });
});

// The coordinator changes the number of hosts at a time and never exceeds the host's limit.

const asked = (pace: "slow-down" | "steady" | "hurry-up", due: number) => ({
  ...({ type: "coordinator:work-pace", pace, due, reason: `${due} due` } as const),
});

describe("places for hosts", () => {
  it("follow the due work with each message, up and down, and never exceed the limit", () => {
    const pace = new WorkPace();
    const told = [
      asked("slow-down", 0),
      asked("steady", 30),
      asked("slow-down", 0),
      asked("hurry-up", 65),
      asked("steady", 5),
      asked("slow-down", 3),
    ];

    const places = told.map((message) => {
      pace.take(message);
      return `${pace.places(32)}/${pace.places(14)}`;
    });

    expect(places.join(" ")).toBe("1/1 30/14 1/1 32/14 5/5 3/3");
  });

  it("are the limit until the coordinator asks, follow a lower limit at once, and are the limit again in a new session", () => {
    const pace = new WorkPace();
    const before = pace.places(32);
    pace.take(asked("slow-down", 16));
    const slowed = [pace.places(32), pace.places(5)];
    pace.forget();

    expect([before, slowed, pace.places(32), pace.asked]).toEqual([32, [16, 5], 32, null]);
  });

  it("record since when a pace is asked for, and why", () => {
    const pace = new WorkPace();
    const noon = new Date("2030-01-01T12:00:00Z");
    pace.take(asked("slow-down", 2), noon);
    pace.take(asked("slow-down", 1), new Date("2030-01-01T12:00:10Z"));

    expect(pace.asked).toEqual({ pace: "slow-down", due: 1, reason: "1 due", since: noon, places: 1 });
  });
});
