/** The parameters of `up`, and its live line. */
import { describe, expect, it, vi } from "vitest";
import type { FrontierProgress } from "#coordinator/crawl/frontier/frontier";
import { UsageError } from "#core/errors";
import { createRunVoice, progressText, RunClock } from "#ops/cli/up/follow-run";
import { worldParameters } from "#ops/cli/up/policy-comparison";

describe("the parameters of a run", () => {
  it("have a default each", () => {
    expect(worldParameters({})).toEqual({
      sites: 500,
      crawlers: 12,
      policy: "nearest",
      seed: 1,
      pagesPerSite: 5,
      noiseMs: 0,
      thresholdMs: 50,
      lambdaMs: 2,
    });
  });

  it("are read from text as the command line gives it, and other options are left out", () => {
    expect(worldParameters({ sites: "50", policy: "ipmicra", lambdaMs: "0", json: true })).toMatchObject({
      sites: 50,
      policy: "ipmicra",
      lambdaMs: 0,
    });
    expect(worldParameters({ json: true })).not.toHaveProperty("json");
  });

  it("are refused with all errors at once, named as on the command line", () => {
    const wrong = { sites: "0", crawlers: "many", policy: "closest", pagesPerSite: "1.5" };

    expect(() => worldParameters(wrong)).toThrow(UsageError);
    expect(() => worldParameters(wrong)).toThrow(
      /^--sites: .*\n--crawlers: .*\n--policy: .*\n--pages-per-site: .*$/,
    );
  });
});

describe("the line of a run", () => {
  const progress = (differences: Partial<FrontierProgress>): FrontierProgress => ({
    hosts: 1000,
    hostsUnresolved: 0,
    hostsRefused: 0,
    hostsFetched: 0,
    hostsDelegated: 0,
    urls: 0,
    urlsPending: 0,
    linksWaiting: 0,
    subnetsWaiting: 0,
    subnetsDelegated: 0,
    pages: 0,
    probes: 0,
    rounds: 0,
    ...differences,
  });
  const at = (seconds: number, expectedPages: number | null = null) => ({
    ms: seconds * 1000,
    crawlersOnline: 11,
    expectedPages,
  });

  it("shows progress, rate and time left", () => {
    const clock = new RunClock(0);
    clock.measure(progress({ pages: 1000 }), at(60));
    const measure = clock.measure(
      progress({ pages: 1200, hostsDelegated: 700, probes: 1250, rounds: 500, urlsPending: 900 }),
      at(70),
    );

    expect(progressText(measure, 12)).toBe(
      "1:10 · crawlers 11/12 · sites 700/1,000 delegated · 2.50 probes/subnet · 1,200 pages · 20.0/s · ETA 0:45",
    );
  });

  it("shows no time left before a tenth is done, and never a longer one than before", () => {
    const clock = new RunClock(0);
    clock.measure(progress({ pages: 0, urlsPending: 1000 }), at(0));
    const etas = [
      [10, 20],
      [20, 200],
      [30, 210],
      [40, 230],
      [50, 970],
    ].map(([second, pages]) => {
      const measured = progress({ pages: pages!, urlsPending: 1000 - pages! });
      return clock.measure(measured, at(second!)).etaSeconds;
    });

    expect(etas[0]).toBeNull();
    expect(etas.slice(1)).toEqual([...etas.slice(1)].sort((one, other) => other! - one!));
    expect(progressText(clock.measure(progress({ pages: 999, urlsPending: 1 }), at(51)), 12)).toContain(
      "the last pages",
    );
  });

  it("shows the rate of the last seconds, not of the whole run", () => {
    const clock = new RunClock(0);
    clock.measure(progress({ pages: 0 }), at(0));
    for (let second = 1; second <= 60; second++) clock.measure(progress({ pages: 600 }), at(second));

    const measure = clock.measure(progress({ pages: 600 }), at(61));

    expect(measure.pagesPerSecond).toBe(0);
    expect(measure.etaSeconds).toBeNull();
  });
});

// A run's output at its start, and who is shown a sign-in link.

it("a sign-in link is printed only on terminals; elsewhere the command is named", () => {
  const written: string[] = [];
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    written.push(String(text));
    return true;
  });
  try {
    const voice = createRunVoice({ json: false });
    expect(voice.isTerminal).toBe(process.stdout.isTTY === true);
    voice.webUrl("http://127.0.0.1:7411", "embedded Postgres", null);
    voice.webUrl("http://127.0.0.1:7411", "embedded Postgres", "http://127.0.0.1:7411/sign-in/ncl_1");
  } finally {
    write.mockRestore();
  }

  expect(written[0]).toContain("sign in:  nearcrawl sign-in prints a link");
  expect(written[1]).toContain("sign in:  http://127.0.0.1:7411/sign-in/ncl_1\n          (as operator, once");
});
