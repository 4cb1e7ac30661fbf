/** The host's limits hold, and survive a restart. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Governor, type GovernorLimits } from "#crawler/limits/governor";

const freshHome = () => mkdtempSync(join(tmpdir(), "nearcrawl-governor-"));

function governor(
  home: string,
  limits: Partial<GovernorLimits>,
  now = new Date("2026-11-21T23:00:00Z"),
  warn: (fields: object, words: string) => void = () => {},
): Governor {
  return new Governor({
    limits: { pagesPerDay: 100, bytesPerDay: 1e9, concurrentHosts: 4, kilobytesPerSecond: null, ...limits },
    kept: { home, warn },
    now: () => now,
  });
}

describe("the governor", () => {
  it("stops at the day's pages, also after a restart, and begins anew on the next day", () => {
    const home = freshHome();
    const today = governor(home, { pagesPerDay: 2 });
    today.countPage();
    today.countPage();
    today.close();

    const restarted = governor(home, { pagesPerDay: 2 });
    const tomorrow = governor(home, { pagesPerDay: 2 }, new Date("2026-11-22T00:00:01Z"));

    expect(restarted.mayFetch()).toBe(false);
    expect(restarted.freeHosts(0)).toBe(0);
    expect(restarted.holdingBack(0)).toEqual(["the day's 2 pages are fetched"]);
    expect(tomorrow.mayFetch()).toBe(true);
  });

  it("goes on, and says so once, when its folder cannot be written", () => {
    const home = join(freshHome(), "a-file");
    writeFileSync(home, "");
    const warnings: string[] = [];
    const one = governor(home, { pagesPerDay: 2 }, undefined, (_fields, words) => void warnings.push(words));

    one.countPage();
    one.close();

    expect(one.mayFetch()).toBe(true);
    expect(warnings).toHaveLength(1);
  });

  it("stops at the day's bytes", () => {
    const one = governor(freshHome(), { bytesPerDay: 1000 });

    one.takeBytes(1000);

    expect(one.mayFetch()).toBe(false);
  });

  it("lets pieces through at once within the rate, and makes them wait beyond it", async () => {
    const one = governor(freshHome(), { kilobytesPerSecond: 1000 });

    const first = one.takeBytes(500 * 1024);
    const second = one.takeBytes(550 * 1024);

    expect(first).toBeNull();
    expect(second).not.toBeNull();
    expect(one.holdingBack(0)).toEqual(["1 downloads wait for the rate of 1000 KB/s"]);
    await second;
    expect(one.holdingBack(0)).toEqual([]);
  });

  it("lets nobody wait any more when it is closed", async () => {
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

  it("takes a damaged file for a new day", () => {
    const home = freshHome();
    writeFileSync(join(home, "day-count.json"), '{"day":"2026-11-21","pages":-4');

    expect(governor(home, {}).mayFetch()).toBe(true);
  });
});
