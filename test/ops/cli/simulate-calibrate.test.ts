/** `nearcrawl simulate calibrate`: what it prints, and what it refuses. */
import { expect, it } from "vitest";
import { calibrateCommand } from "#ops/cli/simulate/calibrate-command";
import { inProcess, said } from "../../support/command-in-process.ts";

const calibrate = (...args: string[]) => said(calibrateCommand(), args);

const small = ["--hosts", "30", "--days", "2", "--fetches-per-day", "48"];

it("prints a row for each change, with what the run was", async () => {
  const text = await calibrate(...small);

  expect(text).toContain("30 hosts, 2 quiet days, 48 fetches per day each, noise 4 ms");
  expect(text).toMatch(/×1\.3 .*\n×1\.5 .*\n×2 .*\n\+30 ms /);
});

it("prints with --json an object for each change, with the delay of each host", async () => {
  const [report] = JSON.parse(await calibrate(...small, "--change", "+100", "--json"));

  expect(report).toMatchObject({
    change: "+100 ms",
    hostDays: 60,
    changedHosts: 6,
    foundWithin10Pct: 100,
    foundWithin10Of10msPct: 100,
  });
  expect(report.delays).toHaveLength(6);
  expect(report.rounds).toBeGreaterThanOrEqual(6);
});

it("gives the same figures for the same seed, and others for another", async () => {
  const first = await calibrate(...small, "--json");
  const again = await calibrate(...small, "--json");

  expect(again).toBe(first);
  expect(await calibrate(...small, "--seed", "2", "--json")).not.toBe(first);
});

it("refuses what is no change, and says what would be one", async () => {
  for (const change of ["abc", "0.5", "+-3", "1.5,", "1e9"]) {
    expect(await inProcess(calibrateCommand(), ["--change", change])).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("a factor from 1 to 100, or +ms, is expected"),
    });
  }
  const spikes = await inProcess(calibrateCommand(), ["--spikes", "2"]);
  expect([spikes.code, spikes.err]).toEqual([2, expect.stringContaining("a number from 0 to 1 is expected")]);
});
