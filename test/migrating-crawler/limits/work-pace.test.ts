/** The coordinator asks for fewer or more hosts at a time; the host's limit is never passed. */
import { describe, expect, it } from "vitest";
import { nextPlaces, WorkPace } from "#crawler/limits/work-pace";

const asked = (pace: "slow-down" | "steady" | "hurry-up", due: number) => ({
  ...({ type: "coordinator:work-pace", pace, due, reason: `${due} due` } as const),
});

describe("places for hosts", () => {
  it.each([
    ["slow-down", 0, null, 32, 16],
    ["slow-down", 0, 16, 32, 8],
    ["slow-down", 0, 1, 32, 1],
    ["slow-down", 20, null, 32, 20],
    ["slow-down", 3, 2, 32, 2],
    ["steady", 9, 8, 32, 8],
    ["steady", 9, null, 32, null],
    ["hurry-up", 65, 8, 32, 16],
    ["hurry-up", 65, 16, 32, null],
    ["hurry-up", 65, null, 32, null],
    ["slow-down", 0, null, 1, null],
  ] as const)(
    "on %s with %i due, %s places under a limit of %i become %s",
    (pace, due, places, limit, next) => {
      expect(nextPlaces({ pace, due, places, limit })).toBe(next);
    },
  );

  it("are the limit's until somebody asks, follow a lower limit at once, and are the limit's again in a new session", () => {
    const pace = new WorkPace();
    const before = pace.places(32);
    pace.take(asked("slow-down", 0), 32);
    const slowed = [pace.places(32), pace.places(5)];
    pace.forget();

    expect([before, slowed, pace.places(32), pace.asked]).toEqual([32, [16, 5], 32, null]);
  });

  it("know since when a pace is asked for, and why", () => {
    const pace = new WorkPace();
    const noon = new Date("2030-01-01T12:00:00Z");
    pace.take(asked("slow-down", 2), 8, noon);
    pace.take(asked("slow-down", 1), 8, new Date("2030-01-01T12:00:10Z"));

    expect(pace.asked).toEqual({ pace: "slow-down", due: 1, reason: "1 due", since: noon, places: 2 });
  });
});
