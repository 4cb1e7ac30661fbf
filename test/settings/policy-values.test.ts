/** Policies have one schema: their bounds are those of the coordinator's file. */
import { describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import {
  isPolicyName,
  policyGroups,
  policyNamesInOrder,
  policyOf,
  setAtStart,
  valueFault,
  valueFromText,
  valueIn,
  valueText,
  withChanges,
} from "#coordinator/run/settings/catalogue";
import { contradictionsIn, policiesOf } from "#coordinator/run/settings/change";

const file = policiesOf(readCoordinatorConfig({}));

it("knows the default of each policy as the file has it, and takes it", () => {
  for (const name of policyNamesInOrder) {
    expect(policyOf(name).default, name).toBe(valueIn(file, name));
    expect(valueFault(name, policyOf(name).default), name).toBeNull();
  }
  expect(policyGroups.flatMap(({ policies }) => policies)).toHaveLength(policyNamesInOrder.length);
  expect(isPolicyName("toString")).toBe(false);
});

it("says for every setting of the file whether it can be changed while running, or why not", () => {
  const leaves = (value: unknown, path: string): string[] =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.entries(value).flatMap(([key, part]) => leaves(part, path === "" ? key : `${path}.${key}`))
      : [path];
  const atStart = setAtStart.flatMap(({ names }) => names);

  const untold = leaves(readCoordinatorConfig({}), "").filter(
    (path) => !isPolicyName(path) && !atStart.some((name) => path === name || path.startsWith(`${name}.`)),
  );

  expect(untold).toEqual([]);
});

it("refuses what the file would refuse, with the value and what it may be", () => {
  expect(valueFault("delegation.lambdaMs", 1001)).toBe(
    "delegation.lambdaMs: 1001 is not a number from 0 to 1,000",
  );
  expect(valueFault("scope.maxDepth", 1.5)).toBe("scope.maxDepth: 1.5 is not a whole number from 0 to 1,000");
  expect(valueFault("recrawl.intervalHours", 0)).toContain("above 0");
  expect(valueFault("balance.policy", "moon")).toBe(
    'balance.policy: "moon" is not one of min-cost-flow, variance-rule, none',
  );
  expect(() => readCoordinatorConfig({ delegation: { lambdaMs: 1001 } })).toThrow("delegation.lambdaMs");
});

it("reads what a person types, and leaves the rest for the schema to refuse", () => {
  expect(valueFromText("delegation.lambdaMs", " 0.5 ")).toBe(0.5);
  expect(valueFromText("scope.admitNewHosts", "Yes")).toBe(true);
  expect(valueFromText("delegation.lambdaMs", "0x10")).toBe("0x10");
  expect(valueFault("delegation.lambdaMs", valueFromText("delegation.lambdaMs", ""))).not.toBeNull();
  expect(valueText("scope.pagesPerHost", 25_000)).toBe("25,000 URLs");
});

it("puts changes over the file's values and leaves those alone", () => {
  const changed = withChanges(file, new Map([["probe.pace.perSecond", 9] as const]));

  expect(changed.probe).toEqual({ ...file.probe, pace: { ...file.probe.pace, perSecond: 9 } });
  expect(file.probe.pace.perSecond).toBe(500);
});

describe("refuses what contradicts itself", () => {
  type Name = Parameters<typeof valueIn>[1];
  const stated = (settings: object, ...asked: string[]) =>
    contradictionsIn(policiesOf(readCoordinatorConfig(settings)), asked);
  const changed = (...changes: (readonly [Name, number | string | boolean])[]) =>
    contradictionsIn(
      withChanges(file, new Map(changes)),
      changes.map(([name]) => name),
    );
  const recrawl = (settings: object) =>
    stated({ recrawl: settings }, "recrawl.strategy", "recrawl.smallestMultiple", "recrawl.shortestHours");
  const leaseWords =
    "lease.seconds: a crawler leaves 1 s between two URLs of a host, so 20 of them (lease.urlsPerHost) take longer than a lease of 19 s";

  it.each([
    [
      "a lease that is shorter than its URLs take",
      stated({ lease: { seconds: 19 } }, "lease.seconds"),
      leaseWords,
    ],
    [
      "a limit that another one never lets be reached",
      changed(["probe.pace.perTargetPerSecond", 6]),
      "perNetworkPerSecond is 5",
    ],
    [
      "new hosts that are admitted, and none a day",
      changed(["scope.admitNewHosts", true], ["scope.newHostsPerCrawlerAndDay", 0]),
      "scope.",
    ],
    [
      "checks of links' types that outlast a lease",
      stated({ frontier: { linkTypeChecks: 20 } }, "frontier.linkTypeChecks"),
      "take 420 s",
    ],
    [
      "a crawler that is to slow down and to hurry up at once",
      changed(["pace.slowDownUnder", 64]),
      "to slow down and to hurry up at once",
    ],
    [
      "multiples that exclude each other",
      recrawl({ smallestMultiple: 5, biggestMultiple: 2 }),
      "no interval is within both",
    ],
    ["intervals that exclude each other", recrawl({ shortestHours: 100, longestDays: 2 }), "48 h"],
    ["an interval shorter than a lease", recrawl({ shortestHours: 0.01 }), "before the lease on them ends"],
    [
      "an interval beyond the bounds",
      recrawl({ strategy: "optimal", intervalHours: 2000 }),
      "nothing is left to divide",
    ],
    [
      "a total without effect",
      recrawl({ strategy: "iir", total: "capacity" }),
      "no effect under recrawl.strategy iir",
    ],
  ])("%s", (_what, faults, words) => {
    expect(faults).toEqual([expect.stringContaining(words)]);
  });

  it.each([
    ["what just fits", stated({ lease: { seconds: 19, urlsPerHost: 19 } }, "lease.seconds")],
    [
      "as many checks as a lease has room for",
      stated({ frontier: { linkTypeChecks: 14 } }, "frontier.linkTypeChecks"),
    ],
    ["a pace that is reached", changed(["pace.hurryUpOver", 5])],
    [
      "an interval that capacity decides",
      recrawl({ strategy: "optimal", total: "capacity", intervalHours: 2000 }),
    ],
    [
      "the defaults of every strategy",
      ["fixed", "iir", "icr", "optimal"].flatMap((strategy) => recrawl({ strategy })),
    ],
    ["what nobody touched", stated({ lease: { seconds: 1 } }, "trust.share")],
  ])("and not %s", (_what, faults) => {
    expect(faults).toEqual([]);
  });
});

it("reads a file from before hints and the strategy ncis were removed: ncis means optimal", () => {
  const former = { recrawl: { strategy: "ncis", intervalHours: 24 }, hints: { webSub: true } };

  expect(readCoordinatorConfig(former).recrawl).toMatchObject({ strategy: "optimal", intervalHours: 24 });
});
