import { describe, expect, it } from "vitest";
import { countedSlices, nextPace, paceReason } from "#coordinator/crawl/frontier/pace";
import type { WorkPace } from "#coordinator/crawl/frontier/pace-store";

const rule = { slowDownUnder: 4, hurryUpOver: 64 };

describe("the pace of a crawler", () => {
  it.each([
    ["steady", 0, "slow-down"],
    ["steady", 3, "slow-down"],
    ["steady", 4, "steady"],
    ["steady", 64, "steady"],
    ["steady", 65, "hurry-up"],
    ["slow-down", 7, "slow-down"],
    ["slow-down", 8, "steady"],
    ["hurry-up", 33, "hurry-up"],
    ["hurry-up", 32, "steady"],
    ["slow-down", 65, "hurry-up"],
    ["hurry-up", 3, "slow-down"],
  ] as const)("after %s, with %i slices due, is %s", (before, due, pace) => {
    expect(nextPace(before, due, rule)).toBe(pace);
  });

  it("does not come and go while work swings about a threshold", () => {
    const told: WorkPace[] = [];
    let pace: WorkPace = "steady";
    for (const due of [5, 3, 5, 3, 7, 4, 8, 70, 60, 66, 40, 31]) {
      pace = nextPace(pace, due, rule);
      if (told.at(-1) !== pace) told.push(pace);
    }

    expect(told).toEqual(["steady", "slow-down", "steady", "hurry-up", "steady"]);
  });

  it("keeps to both thresholds where they are close to each other", () => {
    const close = { slowDownUnder: 10, hurryUpOver: 12 };

    expect([9, 10, 12, 13].map((due) => nextPace("slow-down", due, close))).toEqual([
      "slow-down",
      "slow-down",
      "steady",
      "hurry-up",
    ]);
    expect([9, 10, 12].map((due) => nextPace("hurry-up", due, close))).toEqual([
      "slow-down",
      "steady",
      "hurry-up",
    ]);
  });

  it("is told with its reason, and by no more slices than it takes", () => {
    expect(countedSlices(rule)).toBe(65);
    expect(paceReason("slow-down", 1, rule)).toBe(
      "1 host slice due or in hand, under 4: no more connections than that",
    );
    expect(paceReason("hurry-up", 65, rule)).toBe(
      "65 host slices due or in hand, over 32: as many connections as are allowed",
    );
  });
});
