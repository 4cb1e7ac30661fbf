import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { balanceCommand, simulateBalance } from "#ops/cli/simulate/balance-command";
import { balanceWorld } from "#ops/simulate/balance-fortnight";
import { generatedSource } from "#ops/simulate/repeat-policies";
import { parseFixture } from "#ops/world/read-fixture";
import { sharedData } from "../../support/shared-data.ts";

const small = generatedSource({ crawlers: 8, sites: 200 });
const settings = { seed: 3, headroom: 1.25, loads: "equal", knowledge: "probed" } as const;

describe("a world to balance", () => {
  it("knows of each subnet what its delegation measured, and its owner's RTT always", () => {
    const world = balanceWorld(small.instance(3), settings);

    for (const { subnetId, crawlerId, rttMs } of world.input.subnets) {
      expect(rttMs.get(crawlerId)).toBe(world.rttMs(subnetId, crawlerId));
      for (const [other, ms] of rttMs) expect(ms).toBe(world.rttMs(subnetId, other));
    }
    const measured = world.input.subnets.reduce((sum, { rttMs }) => sum + rttMs.size, 0);
    expect(measured).toBeLessThan(4 * world.input.subnets.length);
  });

  it("knows everything when it is asked to", () => {
    const world = balanceWorld(small.instance(3), { ...settings, knowledge: "exact" });

    expect(world.input.subnets.every(({ rttMs }) => rttMs.size === 8)).toBe(true);
  });

  it("has capacity for its load and the headroom, and no subnet over half a crawler's", () => {
    const { crawlers, subnets } = balanceWorld(small.instance(3), {
      ...settings,
      loads: "heavy-tailed",
    }).input;
    const load = subnets.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);
    const capacity = crawlers.reduce((sum, { capacityPagesPerDay }) => sum + capacityPagesPerDay, 0);

    expect(capacity).toBeCloseTo(1.25 * load);
    const largest = Math.max(...subnets.map(({ loadPagesPerDay }) => loadPagesPerDay));
    expect(largest).toBeLessThanOrEqual(0.55 * crawlers[0]!.capacityPagesPerDay);
    expect(largest).toBeGreaterThan(10 * 10);
  });
});

describe("balancing a world", () => {
  it("by the cheapest flow leaves no overload, and adds less than every other policy", () => {
    const world = balanceWorld(small.instance(3), { ...settings, knowledge: "exact" });
    const [flow, ...others] = (["min-cost-flow", "random", "greedy", "variance-rule"] as const).map(
      (policy) => simulateBalance(world, { policy, seed: 3 }),
    );

    expect(flow!.overloadsLeft).toBe(0);
    expect(flow!.probes).toBe(0);
    for (const other of others) expect(flow!.addedMs).toBeLessThan(other.addedMs);
  });

  it("makes only moves that were measured, and counts the probes", () => {
    const world = balanceWorld(small.instance(3), settings);
    const asked: string[] = [];
    const watched = {
      ...world,
      rttMs: (...pair: Parameters<typeof world.rttMs>) => {
        asked.push(pair.join());
        return world.rttMs(...pair);
      },
    };

    const figures = simulateBalance(watched, { policy: "min-cost-flow", seed: 3, rounds: 3 });

    expect(figures.probes).toBeGreaterThan(0);
    expect(figures.rounds).toBeLessThanOrEqual(3);
    expect(asked.length).toBeGreaterThanOrEqual(figures.probes);
  });

  it("gives the same figures for the same seed", () => {
    const run = () => {
      const world = balanceWorld(small.instance(5), { ...settings, seed: 5, loads: "heavy-tailed" });
      const { planSeconds: _planSeconds, ...figures } = simulateBalance(world, {
        policy: "min-cost-flow",
        seed: 5,
      });
      return figures;
    };

    expect(run()).toEqual(run());
  });
});

const measured = sharedData("latency/PL12.json");

describe.skipIf(measured === null)("on 12 measured crawlers", () => {
  const instance = () => parseFixture(readFileSync(measured as string, "utf8"), measured as string);

  it("predicting and probing comes within 10 % of the plan that knows everything", () => {
    const exact = balanceWorld(instance(), { ...settings, seed: 1, knowledge: "exact" });
    const probed = balanceWorld(instance(), { ...settings, seed: 1 });

    const best = simulateBalance(exact, { policy: "min-cost-flow", seed: 1 });
    const ours = simulateBalance(probed, { policy: "min-cost-flow", seed: 1 });

    expect(ours.extraMs).toBeLessThan(1.1 * best.extraMs);
    expect(ours.overloadsLeft).toBe(0);
    expect(ours.probes / ours.moves).toBeLessThan(5);
  });
});

describe("the command", () => {
  it("refuses a policy that is none, and both or neither of fixture and world", async () => {
    const command = () =>
      balanceCommand()
        .exitOverride()
        .configureOutput({ writeErr: () => {} });

    await expect(command().parseAsync(["--policy", "best"], { from: "user" })).rejects.toThrow(
      /"best" is none of none, random/,
    );
    await expect(command().parseAsync([], { from: "user" })).rejects.toThrow(/is needed/);
    await expect(command().parseAsync(["--fixture", "f.json", "--world"], { from: "user" })).rejects.toThrow(
      /is needed/,
    );
  });
});
