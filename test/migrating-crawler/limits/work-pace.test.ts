/** The coordinator changes the number of hosts at a time and never exceeds the host's limit. */
import { describe, expect, it } from "vitest";
import { WorkPace } from "#crawler/limits/work-pace";

const asked = (pace: "slow-down" | "steady" | "hurry-up", due: number) => ({
  ...({ type: "coordinator:work-pace", pace, due, reason: `${due} due` } as const),
});

describe("places for hosts", () => {
  it("follow the due work within one message, up and down, and never pass the limit", () => {
    const pace = new WorkPace();
    const told = [
      asked("slow-down", 0),
      asked("steady", 30),
      asked("slow-down", 0),
      asked("hurry-up", 65),
      asked("steady", 5),
      asked("slow-down", 3),
    ];

    const places = told.map((message) => {
      pace.take(message);
      return `${pace.places(32)}/${pace.places(14)}`;
    });

    expect(places.join(" ")).toBe("1/1 30/14 1/1 32/14 5/5 3/3");
  });

  it("are the limit's until somebody asks, follow a lower limit at once, and are the limit's again in a new session", () => {
    const pace = new WorkPace();
    const before = pace.places(32);
    pace.take(asked("slow-down", 16));
    const slowed = [pace.places(32), pace.places(5)];
    pace.forget();

    expect([before, slowed, pace.places(32), pace.asked]).toEqual([32, [16, 5], 32, null]);
  });

  it("know since when a pace is asked for, and why", () => {
    const pace = new WorkPace();
    const noon = new Date("2030-01-01T12:00:00Z");
    pace.take(asked("slow-down", 2), noon);
    pace.take(asked("slow-down", 1), new Date("2030-01-01T12:00:10Z"));

    expect(pace.asked).toEqual({ pace: "slow-down", due: 1, reason: "1 due", since: noon, places: 1 });
  });
});
