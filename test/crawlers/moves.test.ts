/** The steps of a move: at each of them exactly one host may run the crawler, and nothing is decided twice. */
import { describe, expect, it } from "vitest";
import {
  hostThatMayRun,
  type MoveEvent,
  type MoveStep,
  moveSteps,
  nextMoveStep,
  openMoveSteps,
} from "#coordinator/crawlers/moves";

const events: readonly MoveEvent[] = ["begun", "ready", "packed", "arrived", "came", "broken"];

const stepAfter = (...said: readonly MoveEvent[]): MoveStep =>
  said.reduce<MoveStep>((step, event) => nextMoveStep(step, event) ?? step, "asked");

describe("a move", () => {
  it("ends on the other host when each end has done its part in turn", () => {
    expect(stepAfter("begun", "ready", "packed", "arrived", "came")).toBe("running");
  });

  it("fails from every step before it is decided, and from none after", () => {
    expect(openMoveSteps).toEqual(["asked", "emptying", "packing", "sending"]);
    expect(stepAfter("begun", "ready", "packed", "arrived", "broken")).toBe("moved");
  });

  it("is decided by one event alone, whatever is said in whatever order", () => {
    const changes = moveSteps.flatMap((step) =>
      events.flatMap((event) => {
        const next = nextMoveStep(step, event);
        return next !== null && hostThatMayRun(next) !== hostThatMayRun(step) ? [`${step} ${event}`] : [];
      }),
    );

    expect(changes).toEqual(["sending arrived"]);
  });

  it("skips no step: what comes too early or twice changes nothing", () => {
    expect(stepAfter("arrived", "packed", "ready")).toBe("asked");
    expect(stepAfter("begun", "begun", "ready", "ready", "arrived")).toBe("packing");
  });
});
