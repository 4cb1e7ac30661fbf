/** Each rule of the pseudocode and of equation 4, on groups whose numbers can be followed in the head. */
import { describe, expect, it } from "vitest";
import {
  capacityFactor,
  checkPriorities,
  type GroupRecord,
  isReassignmentDue,
  iteratedCapacity,
  iteratedInterval,
  priorityLimitsFault,
} from "#coordinator/crawl/recrawl/priority-groups";

const limits = { smallestMultiple: 1.2, biggestMultiple: 3 };

describe("checkPriorities (3.1)", () => {
  it("sets a group that would be more urgent than the previous one to σ times its interval", () => {
    expect(checkPriorities([100, 90, 200], limits)).toEqual([100, 120, 200]);
  });

  it("leaves a barely less urgent group alone: σ is no minimum", () => {
    expect(checkPriorities([100, 101], limits)).toEqual([100, 101]);
    expect(checkPriorities([100, 100], limits)).toEqual([100, 100]);
  });

  it("caps a group at μ times the corrected interval before it, and never the first", () => {
    expect(checkPriorities([100, 1000, 1000], limits)).toEqual([100, 300, 900]);
    expect(checkPriorities([1e9], limits)).toEqual([1e9]);
  });

  it("has nothing to check without groups", () => {
    expect(checkPriorities([], limits)).toEqual([]);
  });
});

describe("iterated interval reassignment (3.1)", () => {
  it("takes the mean of the channels' intervals, shortened by δ where the success rate rose", () => {
    const { intervalSeconds, successRates } = iteratedInterval({
      groups: [
        record({ hIntervalSeconds: 100, submitted: 4, updates: 3 }),
        record({ hIntervalSeconds: 200, submitted: 4, updates: 2 }),
      ],
      intervalSeconds: [60, 120],
      lastSuccessRates: [0.5, 0.5],
      encourageRate: 0.8,
      limits,
    });

    expect(intervalSeconds).toEqual([80, 200]);
    expect(successRates).toEqual([0.75, 0.5]);
  });

  it("counts each group's successes alone, though the pseudocode never resets its counts", () => {
    const { successRates } = iteratedInterval({
      groups: [record({ submitted: 10, updates: 10 }), record({ submitted: 10, updates: 0 })],
      intervalSeconds: [60, 120],
      lastSuccessRates: [0, 0],
      encourageRate: 0.8,
      limits,
    });

    expect(successRates).toEqual([1, 0]);
  });

  it("ends with checkPriorities, after the encouragement", () => {
    const { intervalSeconds } = iteratedInterval({
      groups: [record({ hIntervalSeconds: 100 }), record({ hIntervalSeconds: 110 })],
      intervalSeconds: [60, 120],
      lastSuccessRates: [1, 0.5],
      encourageRate: 0.8,
      limits,
    });

    // 110 · 0.8 = 88 is below 100.
    expect(intervalSeconds).toEqual([100, 120]);
  });

  it("keeps interval and success rate of a group without channels or tasks", () => {
    const { intervalSeconds, successRates } = iteratedInterval({
      groups: [
        record({ hIntervalSeconds: 60, submitted: 0, updates: 0 }),
        record({ channels: 0, hIntervalSeconds: null, submitted: 0, updates: 0 }),
      ],
      intervalSeconds: [60, 120],
      lastSuccessRates: [0.4, 0.7],
      encourageRate: 0.8,
      limits,
    });

    expect(intervalSeconds).toEqual([60, 120]);
    expect(successRates).toEqual([0.4, 0.7]);
  });
});

describe("iterated capacity reassignment (3.2)", () => {
  // Groups of two and one channels that take 30 s each, at 60 and 120 s: 2·30/60 + 30/120 = 1.25 threads.
  const initialIntervalSeconds = [60, 120];

  it("stretches all intervals by the threads they need over the threads that updates took", () => {
    const groups = [
      record({ downloadSeconds: 60, busyThreads: 0.4 }),
      record({ downloadSeconds: 30, busyThreads: 0.1 }),
    ];

    expect(capacityFactor(groups, initialIntervalSeconds)).toBeCloseTo(2.5, 12);
    expect(
      iteratedCapacity({
        groups,
        initialIntervalSeconds,
        intervalSeconds: [1, 2],
        lastSuccessRates: [1, 1],
        encourageRate: 0.8,
        limits,
      }).intervalSeconds,
    ).toEqual([150, 300]);
  });

  it("is equation 4 with its products of ω written out", () => {
    const intervals = [60, 90, 270];
    const groups = [7, 11, 13].map((downloadSeconds, index) =>
      record({ downloadSeconds, busyThreads: 0.01 * (index + 1) }),
    );
    const omega = [90 / 60, 270 / 90];
    let sum = 0;
    for (let k = 0; k < 3; k += 1) {
      let product = 1;
      for (let j = 0; j <= k - 1; j += 1) product *= omega[j]!;
      sum += (1 / product) * groups[k]!.downloadSeconds;
    }

    expect(capacityFactor(groups, intervals)).toBeCloseTo(sum / (60 * 0.06), 12);
  });

  it("encourages after that, and ends with checkPriorities", () => {
    const groups = [
      record({ submitted: 2, updates: 1, downloadSeconds: 60, busyThreads: 0.4 }),
      record({ submitted: 2, updates: 2, downloadSeconds: 30, busyThreads: 0.1 }),
    ];

    // θ = 2.5: 150 and 300 s; the second group's tasks succeed more often: 300 · 0.4 = 120 < 150 is set to 1.2 times.
    const { intervalSeconds, successRates } = iteratedCapacity({
      groups,
      initialIntervalSeconds,
      intervalSeconds: [1, 2],
      lastSuccessRates: [0.5, 0.9],
      encourageRate: 0.4,
      limits,
    });

    expect(intervalSeconds).toEqual([150, 180]);
    expect(successRates).toEqual([0.5, 1]);
  });

  it("keeps the intervals while nothing was downloaded", () => {
    const groups = [record({ submitted: 5, updates: 0, downloadSeconds: 0, busyThreads: 0 })];

    expect(
      iteratedCapacity({
        groups,
        initialIntervalSeconds: [60],
        intervalSeconds: [77],
        lastSuccessRates: [0],
        encourageRate: 0.8,
        limits,
      }).intervalSeconds,
    ).toEqual([77]);
  });
});

it.each([
  [10, 4, false],
  [10, 5, true],
  [0, 0, false],
])(
  "of %d urgent channels %d with more than five updates make a reassignment due: %s",
  (channels, enough, isDue) => {
    expect(isReassignmentDue(channels, enough)).toBe(isDue);
  },
);

describe("settings that contradict themselves", () => {
  it("are σ below 1 and μ below σ, refused with their values", () => {
    expect(priorityLimitsFault({ smallestMultiple: 0.5, biggestMultiple: 3 })).toContain("(σ) is 0.5");
    expect(priorityLimitsFault({ smallestMultiple: 3, biggestMultiple: 2 })).toContain("(μ) is 2");
  });

  it("valid limits pass", () => {
    expect(priorityLimitsFault(limits)).toBeNull();
  });
});

function record(fields: Partial<GroupRecord>): GroupRecord {
  return {
    channels: 1,
    hIntervalSeconds: 60,
    submitted: 1,
    updates: 1,
    downloadSeconds: 1,
    busyThreads: 1,
    ...fields,
  };
}
