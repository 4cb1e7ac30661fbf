/** Daily and monthly use, whatever the clock does and whenever the process is killed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import {
  bytesOfMonth,
  emptyLedger,
  onDay,
  UsageCaps,
  type UsageLedger,
  withUse,
} from "#crawler/limits/usage-caps";
import { type CrawlerLimits, limitsSchema } from "#crawler/settings/limits-config";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let home: string;
let now: Date;
beforeEach(() => {
  home = temporaryFolder("nearcrawl-usage-");
  now = new Date("2026-11-22T12:00:00Z");
});

function capsOf(limits: Partial<CrawlerLimits>): UsageCaps {
  const all = limitsSchema.parse({ timeZone: "Europe/Athens", ...limits });
  return new UsageCaps({ limits: all, kept: { home, warn: () => {} }, now: () => now });
}

/** The ledger after these bytes on these days of 2026, in order. */
function after(days: string): UsageLedger {
  return days.split(" ").reduce((ledger, entry) => {
    const [day = "", bytes] = entry.split("=");
    return withUse(onDay(ledger, day.length === 5 ? `2026-${day}` : day), 1, Number(bytes));
  }, emptyLedger);
}

it.each([
  ["11-21=100 11-22=30 11-24=5", 5, 135, "begins a day with nothing"],
  ["11-30=100 12-01=30", 30, 30, "begins a month with nothing"],
  ["11-30=100 2027-11-30=30", 30, 30, "begins the same month with nothing a year later"],
  ["11-21=100 11-22=30 11-21=1", 101, 101, "goes on with a day that the clock goes back to"],
  ["11-21=100 11-22=30 11-21=1 11-22=0", 30, 131, "takes over into the next day what was added to the month"],
  ["11-21=100 11-22=30 2000-01-01=7", 37, 137, "gives nothing away to a clock that is set back"],
  ["11-21=100 11-22=30 2000-01-01=7 11-22=1", 38, 138, "counts what came in a wrong day to the right one"],
  ["11-22=30 2036-01-01=9 11-22=1 11-23=2", 2, 33, "outlives a clock that was years ahead"],
])("a ledger of %s has %i bytes today and %i in the month: it %s", (days, today, month) => {
  const ledger = after(days);

  expect([ledger.today.bytes, bytesOfMonth(ledger)]).toEqual([today, month]);
});

describe("the use on disk", () => {
  const onDisk = () => JSON.parse(readFileSync(join(home, "day-count.json"), "utf8"));

  it("is ahead of the real one at every moment, by half a percent of the cap at most", () => {
    const caps = capsOf({ bytesPerDay: 1_000_000 });
    const random = seededRandom(7);
    let used = 0;

    const ahead = Array.from({ length: 200 }, () => {
      const bytes = Math.floor(random() * 400);
      caps.count(0, bytes);
      used += bytes;
      return onDisk().bytes - used;
    });

    expect(Math.min(...ahead)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...ahead)).toBeLessThanOrEqual(5000);
  });

  it("is exact after an orderly end", () => {
    const caps = capsOf({});
    caps.count(3, 777);

    caps.close();

    expect(onDisk()).toMatchObject({ pages: 3, bytes: 777 });
    expect(capsOf({ bytesPerDay: 1000, pagesPerDay: 5 }).leftPages()).toBe(2);
    expect(capsOf({ bytesPerDay: 1000 }).leftBytes("link")).toBe(223);
  });
});

describe("the day's and the month's bytes", () => {
  it("hold over kills: each costs half a percent of the cap, and none gives anything back", () => {
    const cap = 1_000_000;
    let carried = 0;

    for (let life = 0; life < 10; life++) {
      const caps = capsOf({ bytesPerDay: cap });
      for (let piece = 0; piece < 300 && caps.leftBytes("fetch") > 0; piece++) {
        caps.count(0, 500);
        carried += 500;
      }
    }

    expect(carried).toBeLessThanOrEqual(cap);
    expect(carried).toBeGreaterThan(0.93 * cap);
  });

  it("begin anew at midnight by the clock on the wall, and the month at its end", () => {
    const caps = capsOf({ bytesPerDay: 1000, bytesPerMonth: 1500 });
    const spentAt = (time: string) => {
      now = new Date(time);
      const left = caps.leftBytes("link");
      caps.count(0, left);
      return left;
    };

    const times = [
      "2026-10-30T20:00:00Z",
      "2026-10-30T22:00:00Z",
      "2026-10-31T21:59:59Z",
      "2026-10-31T22:00:00Z",
    ];

    expect(times.map(spentAt)).toEqual([1000, 500, 0, 1000]);
  });

  it("are not to be had again by setting the clock back", () => {
    const caps = capsOf({ bytesPerDay: 1000 });
    caps.count(0, 1000);

    now = new Date("2026-11-20T12:00:00Z");

    expect(caps.leftBytes("fetch")).toBeLessThanOrEqual(0);
    expect(caps.spent()).toBe("the day's 1000 bytes are used up");
  });
});
