/** Policies have one schema: their bounds are those of the coordinator's file. */
import { describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { policiesOf } from "#coordinator/live-config";
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
} from "#coordinator/settings/catalogue";
import { contradictionsIn } from "#coordinator/settings/change";

const file = policiesOf(readCoordinatorConfig({}));

it("knows the default of each policy as the file has it, and takes it", () => {
  for (const name of policyNamesInOrder) {
    expect(policyOf(name).default, name).toBe(valueIn(file, name));
    expect(valueFault(name, policyOf(name).default), name).toBeNull();
  }
  expect(policyGroups.flatMap(({ policies }) => policies)).toHaveLength(policyNamesInOrder.length);
  expect(isPolicyName("toString")).toBe(false);
});

it("tells of every setting of the file whether it can be changed while running, or why it cannot", () => {
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

it("reads what a person types, and leaves what means nothing for the schema to refuse", () => {
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
  const faults = (
    changes: readonly (readonly [Parameters<typeof valueIn>[1], number | string | boolean])[],
  ) =>
    contradictionsIn(
      withChanges(file, new Map(changes)),
      changes.map(([name]) => name),
    );

  it("a lease that is shorter than its URLs take", () => {
    const of = (lease: object) =>
      contradictionsIn(policiesOf(readCoordinatorConfig({ lease })), ["lease.seconds"]);

    expect(of({ seconds: 19 })).toEqual([
      "lease.seconds: a crawler leaves 1 s between two URLs of a host, so 20 of them (lease.urlsPerHost) take longer than a lease of 19 s",
    ]);
    expect(of({ seconds: 19, urlsPerHost: 19 })).toEqual([]);
  });

  it("a limit that another one never lets be reached", () => {
    expect(faults([["probe.pace.perTargetPerSecond", 6]])[0]).toContain("perNetworkPerSecond is 5");
  });

  it("new hosts that are admitted, and none a day", () => {
    expect(
      faults([
        ["scope.admitNewHosts", true],
        ["scope.newHostsPerCrawlerAndDay", 0],
      ]),
    ).toHaveLength(1);
  });

  it("checks of links' types that outlast a lease", () => {
    const of = (linkTypeChecks: number) =>
      contradictionsIn(policiesOf(readCoordinatorConfig({ frontier: { linkTypeChecks } })), [
        "frontier.linkTypeChecks",
      ]);

    expect(of(20)[0]).toContain("take 420 s");
    expect(of(14)).toEqual([]);
  });

  it("a crawler that is to slow down and to hurry up at once", () => {
    expect(faults([["pace.slowDownUnder", 64]])[0]).toContain("to slow down and to hurry up at once");
    expect(faults([["pace.hurryUpOver", 5]])).toEqual([]);
  });

  it("and not what nobody touched", () => {
    expect(
      contradictionsIn(policiesOf(readCoordinatorConfig({ lease: { seconds: 1 } })), ["trust.share"]),
    ).toEqual([]);
  });
});
