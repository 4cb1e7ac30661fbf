/** `nearcrawl simulate pace`: what it prints and refuses, and that the sites limit what they say. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { paceCommand } from "#ops/cli/simulate/pace-command";
import { limitedSite, limiterKinds } from "#ops/simulate/pace/limiters";
import { controllers, simulatePace } from "#ops/simulate/pace/simulate-pace";
import { inProcess, said } from "../../support/command-in-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const pace = (...args: string[]) => said(paceCommand(), args);

it("prints a row for each limiter and pace, and draws them", async () => {
  const folder = temporaryFolder("nearcrawl-pace-");
  const text = await pace(
    "--limiter",
    "token-bucket,none",
    "--hours",
    "2",
    "--seeds",
    "2",
    "--pictures",
    folder,
  );

  expect(text).toMatch(
    /\ntoken bucket +earlier .*\ntoken bucket +tolerated .*\nno limit +earlier .*\nno limit +tolerated /,
  );
  expect(readFileSync(join(folder, "pace.svg"), "utf8")).toContain("token bucket");
});

it("gives the same figures for the same seed, and others for another", async () => {
  const args = ["--limiter", "ban-list", "--hours", "3", "--seeds", "1", "--json"];
  const first = await pace(...args);

  expect(await pace(...args)).toBe(first);
  expect(await pace(...args, "--seed", "2")).not.toBe(first);
});

it("refuses limiters that there are not, and a fastest rest above the floor", async () => {
  const unknown = await inProcess(paceCommand(), ["--limiter", "moat"]);
  const contrary = await inProcess(paceCommand(), ["--fastest-ms", "2000"]);

  expect([unknown.code, contrary.code]).toEqual([2, 2]);
  expect(contrary.err).toContain("--fastest-ms 2000 is more than --floor-ms 1000");
});

describe.each(limiterKinds.filter((kind) => !["none", "slow-server", "leaky-queue"].includes(kind)))(
  "%s",
  (kind) => {
    it("lets through what it allows, and a ban lasts an hour", () => {
      const site = limitedSite(kind, 3);
      let [good, refused, banned] = [0, 0, 0];
      for (let atMs = 0; atMs < 10 * 3_600_000; atMs += 1000) {
        if (site.isBanned(atMs)) {
          banned += 1;
          continue;
        }
        if (site.ask(atMs).status === 200) good += 1;
        else refused += 1;
      }

      expect(refused).toBeGreaterThan(2);
      if (kind.startsWith("ban-list")) expect(banned).toBeGreaterThan(3500);
      else expect(good / (10 * site.allowedPerHour)).toBeGreaterThan(0.95);
      expect(good / (10 * site.allowedPerHour)).toBeLessThan(1.15);
    });

    it("refuses less of what the tolerated pace asks than of the one before, and lets more through where that was little", () => {
      const settings = { floorMs: 1000, responseTimeFactor: 5 };
      const [earlier, tolerated] = controllers.map((controller) =>
        simulatePace({ kind, controller, seed: 2, hours: 8, settings }),
      );

      expect(tolerated!.refused / tolerated!.asked).toBeLessThan(earlier!.refused / earlier!.asked);
      expect(tolerated!.share).toBeGreaterThan(Math.min(0.8, earlier!.share));
    });
  },
);
