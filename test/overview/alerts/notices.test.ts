/** What people are told of alerts, step by step, on a clock of minutes. */
import { expect, it } from "vitest";
import type { AlertSeverity } from "#coordinator/tell/overview/alert-facts";
import {
  type AlertState,
  mostTries,
  nextTryMs,
  planNotices,
  type SeenAlert,
} from "#coordinator/tell/overview/alerts/notices";

const rule = { digestMs: 60_000, againMs: 30 * 60_000 };
const at = (minute: number) => new Date(Date.UTC(2026, 2, 1, 12) + minute * 60_000);

const offline = (...targets: string[]): SeenAlert => ({
  ...{ name: "crawler-offline", severity: "warning", advice: "Write to the partner.", targets },
  words: `Offline: ${targets.join(", ")}.`,
});
const empty: SeenAlert = {
  ...{ name: "registry-empty", severity: "critical", advice: "Put it in force again.", targets: [] },
  words: "No registry is in force.",
};

/** Keeps the states from one look to the next. */
function telling(heard: ReadonlySet<AlertSeverity> = new Set(["critical", "warning", "info"])) {
  let states: readonly AlertState[] = [];
  return {
    look(minute: number, found: readonly SeenAlert[], muted: readonly string[] = []): string[] {
      const plan = planNotices(states, { now: at(minute), found, muted: new Set(muted), heard }, rule);
      states = plan.states;
      return plan.told.map(({ name, state, targets }) => [name, state, ...targets].join(" "));
    },
    acknowledge(name: string) {
      states = states.map((state) =>
        state.name === name
          ? {
              ...state,
              acknowledged: { by: "anna", at: at(0).toISOString(), note: "", targets: state.targets },
            }
          : state,
      );
    },
    states: () => states,
  };
}

it("an alert and its end are reported after a minute each, together with what began meanwhile", () => {
  const world = telling();

  expect(world.look(0, [offline("berlin")])).toEqual([]);
  expect(world.look(0.5, [empty, offline("berlin")])).toEqual([]);
  expect(world.look(1, [empty, offline("berlin")])).toEqual([
    "crawler-offline began berlin",
    "registry-empty began",
  ]);
  expect(world.look(2, [empty, offline("berlin")])).toEqual([]);
  expect(world.look(3, [])).toEqual([]);
  expect(world.look(4, [])).toEqual(["crawler-offline ended berlin", "registry-empty ended"]);
  expect(world.look(5, [])).toEqual([]);
});

it("an alert that is over within the minute is not reported", () => {
  const world = telling();
  world.look(0, [empty]);

  expect(world.look(0.5, [])).toEqual([]);
  expect(world.look(10, [])).toEqual([]);
  expect(world.states()).toEqual([]);
});

it("an alert that returns before its end was reported has not ended", () => {
  const world = telling();
  world.look(0, [empty]);
  world.look(1, [empty]);
  world.look(2, []);

  expect(world.look(2.5, [empty])).toEqual([]);
  expect(world.look(60, [empty])).toEqual([]);
  expect(world.states()).toMatchObject([{ beganAt: at(0), endedAt: null, pendingSince: null }]);
});

it("a flapping alert is reported once in half an hour", () => {
  const world = telling();
  const told: string[] = [];
  for (let minute = 0; minute < 60; minute += 1)
    told.push(...world.look(minute, minute % 4 < 2 ? [empty] : []).map((words) => `${minute}: ${words}`));

  expect(told).toEqual([
    "1: registry-empty began",
    "3: registry-empty ended",
    "33: registry-empty began",
    "35: registry-empty ended",
  ]);
});

it("an additional target is reported after half an hour, a removed one is not", () => {
  const world = telling();
  world.look(0, [offline("berlin")]);
  world.look(1, [offline("berlin")]);

  expect(world.look(5, [offline("athens", "berlin")])).toEqual([]);
  expect(world.look(31, [offline("athens", "berlin")])).toEqual([]);
  expect(world.look(32, [offline("athens", "berlin")])).toEqual(["crawler-offline began athens berlin"]);
  expect(world.look(90, [offline("athens")])).toEqual([]);
  expect(world.look(91, [offline("athens")])).toEqual([]);
});

it("an acknowledged alert is not reported again until it names something new, or ends and begins again", () => {
  const world = telling();
  world.look(0, [offline("berlin")]);
  world.acknowledge("crawler-offline");

  expect(world.look(40, [offline("berlin")])).toEqual([]);
  expect(world.states()[0]?.acknowledged).not.toBeNull();
  world.look(41, [offline("athens", "berlin")]);
  expect(world.states()[0]?.acknowledged).toBeNull();
  expect(world.look(42, [offline("athens", "berlin")])).toEqual(["crawler-offline began athens berlin"]);
  world.acknowledge("crawler-offline");
  world.look(43, []);
  expect(world.look(44, [])).toEqual(["crawler-offline ended athens berlin"]);
  world.look(80, [offline("berlin")]);
  expect(world.look(81, [offline("berlin")])).toEqual(["crawler-offline began berlin"]);
});

it("a muted alert is neither reported nor ended", () => {
  const world = telling();
  world.look(0, [offline("berlin")]);
  world.look(1, [offline("berlin")]);

  expect(world.look(10, [], ["crawler-offline"])).toEqual([]);
  expect(world.look(20, [], ["crawler-offline"])).toEqual([]);
  expect(world.look(30, [offline("berlin")])).toEqual([]);
  world.look(40, []);
  expect(world.look(41, [])).toEqual(["crawler-offline ended berlin"]);
});

it("an alert below every channel's severity is not reported at all", () => {
  const world = telling(new Set(["critical"]));
  world.look(0, [offline("berlin"), empty]);

  expect(world.look(1, [offline("berlin"), empty])).toEqual(["registry-empty began"]);
  expect(world.states().map(({ name, isTold }) => `${name} ${isTold}`)).toEqual([
    "crawler-offline false",
    "registry-empty true",
  ]);
  world.look(2, []);
  expect(world.look(3, [])).toEqual(["registry-empty ended"]);
});

it("attempts get rarer, are spread by chance, and end", () => {
  expect([0, 0.5, 1].map((chance) => nextTryMs(1, chance))).toEqual([12_000, 15_000, 18_000]);
  expect(nextTryMs(6, 0.5)).toBe(7_200_000);
  expect(nextTryMs(mostTries, 0.5)).toBeNull();
});
