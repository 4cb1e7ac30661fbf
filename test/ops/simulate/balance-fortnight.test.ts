import { describe, expect, it } from "vitest";
import { defaultBalanceSettings, noHysteresis } from "#coordinator/balance/plan";
import { balanceWorld, simulateFortnight } from "#ops/simulate/balance-fortnight";
import { generatedSource } from "#ops/simulate/repeat-policies";

const source = generatedSource({ crawlers: 12, sites: 500 });

describe("a fortnight of noisy loads", () => {
  it.each([1, 2])("moves few subnets more than once, at pages a little further away, seed %i", (seed) => {
    const world = balanceWorld(source.instance(seed), {
      seed,
      headroom: 1.25,
      loads: "equal",
      knowledge: "exact",
    });

    const calm = simulateFortnight(world, { settings: defaultBalanceSettings, seed });
    const restless = simulateFortnight(world, { settings: noHysteresis, seed });

    expect(calm.laterMoves).toBeLessThan(0.5 * restless.laterMoves);
    expect(calm.laterMoves / world.input.subnets.length).toBeLessThan(0.5);
    expect(calm.mostMoves).toBeLessThanOrEqual(7);
    expect(calm.overloads).toBe(0);
    expect(calm.extraMs).toBeLessThan(1.2 * restless.extraMs + 0.5);
  });
});
