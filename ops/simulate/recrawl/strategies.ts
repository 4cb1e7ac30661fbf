/**
 * What a recrawl simulation compares: FIXED, IIR and ICR as the coordinator runs them (core/recrawl), on the
 * simulated manager's records, and "optimal" (optimal-strategy.ts).
 */
import {
  iteratedCapacity,
  iteratedInterval,
  noSuccessRates,
  type Reassignment,
} from "#coordinator/recrawl/priority-groups";
import type { SeededRandom } from "#ops/world/seeded-random";
import type { ChannelManager } from "./channel-manager.ts";
import type { CrawlerFleet } from "./crawler-fleet.ts";
import { OptimalStrategy } from "./optimal-strategy.ts";
import type { RecrawlWorld } from "./recrawl-world.ts";
import type { RecrawlScenario, StrategyName } from "./scenario.ts";

export interface StrategyParts {
  readonly scenario: RecrawlScenario;
  readonly world: RecrawlWorld;
  readonly manager: ChannelManager;
  readonly fleet: CrawlerFleet;
  readonly random: SeededRandom;
}

/** Called after each step; true: it has reassigned the intervals. */
export type Strategy = (step: number) => boolean;

export function strategyOf(name: StrategyName, parts: StrategyParts): Strategy {
  switch (name) {
    case "fixed":
      return () => false;
    case "iir":
    case "icr":
      return adaptive(name, parts);
    case "optimal": {
      const optimal = new OptimalStrategy(parts);
      return (step) => optimal.afterStep(step);
    }
  }
}

/** The records are in steps of a minute; the strategies take any unit. */
function adaptive(name: "iir" | "icr", { scenario, world, manager, random }: StrategyParts): Strategy {
  const { changeMinutes, encourageRate } = scenario;
  let now: Reassignment = {
    intervalSeconds: changeMinutes,
    successRates: noSuccessRates(changeMinutes.length),
  };
  return (step) => {
    if (!manager.isReassignmentDue) return false;
    const input = {
      groups: manager.groupRecords(now.intervalSeconds),
      intervalSeconds: now.intervalSeconds,
      lastSuccessRates: now.successRates,
      encourageRate,
      limits: scenario,
    };
    now =
      name === "iir"
        ? iteratedInterval(input)
        : iteratedCapacity({ ...input, initialIntervalSeconds: changeMinutes });
    manager.forget();
    manager.reassign((channel) => now.intervalSeconds[world.group[channel]!]!, step, random);
    return true;
  };
}
