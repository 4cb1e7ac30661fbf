/** What lies on disk of the use is never less than what was used, and little more. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { KeptUsage, UsageCaps } from "#crawler/limits/usage-caps";
import { type CrawlerLimits, limitsSchema } from "#crawler/settings/limits-config";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let home: string;
beforeEach(() => {
  home = temporaryFolder("nearcrawl-usage-");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const noWarning = { warn: () => {} };
const bytesOnDisk = () =>
  (JSON.parse(readFileSync(join(home, "day-count.json"), "utf8")) as { bytes: number }).bytes;

function capsOf(limits: Partial<CrawlerLimits>, now: () => Date): UsageCaps {
  const all = limitsSchema.parse({ timeZone: "Europe/Athens", ...limits });
  return new UsageCaps({ limits: all, kept: { home, ...noWarning }, now });
}

describe("the use on disk", () => {
  it("is ahead of the real one at every moment, by a step at most", () => {
    const usage = new KeptUsage({ home, ...noWarning });
    usage.step = { pages: 1, bytes: 1000 };
    const random = seededRandom(7);
    usage.turnTo("2026-11-22");

    const ahead = Array.from({ length: 200 }, () => {
      usage.add(0, Math.floor(random() * 400));
      return bytesOnDisk() - usage.ledger.today.bytes;
    });

    expect(Math.min(...ahead)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...ahead)).toBeLessThanOrEqual(1000);
  });

  it("is exact after an orderly end", () => {
    const usage = new KeptUsage({ home, ...noWarning });
    usage.turnTo("2026-11-22");
    usage.add(3, 777);

    usage.close();

    expect(new KeptUsage({ home, ...noWarning }).ledger.today).toMatchObject({ pages: 3, bytes: 777 });
  });
});

describe("the day's and the month's bytes", () => {
  it("hold over kills: each costs half a percent of the cap, and none gives anything back", () => {
    const cap = 1_000_000;
    let carried = 0;

    for (let life = 0; life < 10; life++) {
      const caps = capsOf({ bytesPerDay: cap }, () => new Date("2026-11-22T12:00:00Z"));
      for (let piece = 0; piece < 300 && caps.leftBytes("fetch") > 0; piece++) {
        caps.count(0, 500);
        carried += 500;
      }
    }

    expect(carried).toBeLessThanOrEqual(cap);
    expect(carried).toBeGreaterThan(0.93 * cap);
  });

  it("begin anew at midnight by the clock on the wall, and the month at its end", () => {
    let now = new Date("2026-10-30T20:00:00Z");
    const caps = capsOf({ bytesPerDay: 1000, bytesPerMonth: 1500 }, () => now);
    const spend = () => {
      const left = caps.leftBytes("link");
      caps.count(0, left);
      return left;
    };

    const first = spend();
    now = new Date("2026-10-30T22:00:00Z");
    const second = spend();
    now = new Date("2026-10-31T21:59:59Z");
    const third = spend();
    now = new Date("2026-10-31T22:00:00Z");

    expect([first, second, third, spend()]).toEqual([1000, 500, 0, 1000]);
  });

  it("are not to be had again by setting the clock back", () => {
    let now = new Date("2026-11-22T12:00:00Z");
    const caps = capsOf({ bytesPerDay: 1000 }, () => now);
    caps.count(0, 1000);

    now = new Date("2026-11-20T12:00:00Z");

    expect(caps.leftBytes("fetch")).toBeLessThanOrEqual(0);
    expect(caps.spent()).toBe("the day's 1000 bytes are used up");
  });
});
