import { describe, expect, test } from "vitest";
import { decideStage, type WatchedCrawler } from "#coordinator/run/releases/decide-stage";

const now = new Date("2030-01-01T12:00:00Z");
const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000);

const running: WatchedCrawler = {
  name: "athens",
  inStage: true,
  offeredAt: ago(120),
  state: "running",
  reportedAt: ago(90),
  reason: "",
  offlineSince: null,
  fetches: 1000,
  failures: 10,
};
const outside: WatchedCrawler = {
  ...running,
  name: "oslo",
  inStage: false,
  offeredAt: null,
  state: null,
  reportedAt: null,
};

describe("a release that moves by itself", () => {
  test("moves on when all who took it have run it for the soak time", () => {
    expect(decided([running, outside])).toEqual({
      type: "advance",
      words: "1 run it, without problems for 90 of 60 minutes",
    });
  });

  test.each([
    [
      "nobody runs it",
      [{ ...running, state: null, reportedAt: null, offlineSince: ago(200) }],
      "no crawler runs it",
    ],
    ["one has run it for too short a time", [running, { ...running, reportedAt: ago(59) }], "for 59 of 60"],
    ["one does not run it yet", [running, { ...running, name: "rome", state: null }], "rome was offered it"],
    ["it was not offered to anybody", [{ ...running, offeredAt: null, state: null }], "no crawler runs it"],
  ] satisfies [string, WatchedCrawler[], string][])("waits while %s", (_, members, words) => {
    expect(decided([...members, outside])).toMatchObject({
      type: "stay",
      words: expect.stringContaining(words),
    });
  });

  test("does not count how long it ran in the stage before", () => {
    const early = { crawlers: [running, outside], soakMinutes: 60, now };

    expect(decideStage({ ...early, stageSince: ago(59) }).type).toBe("stay");
    expect(decideStage({ ...early, stageSince: ago(60) }).type).toBe("advance");
  });

  test("does not wait for partners who pin or delay, nor for docks that refuse", () => {
    const aside = (["pinned", "delayed", "refused"] as const).map((state) => ({
      ...running,
      state,
      reportedAt: now,
    }));

    expect(decided([running, ...aside]).type).toBe("advance");
    expect(decided(aside).type).toBe("stay");
  });

  test("is tried by another crawler when the first returned, and stops when that did, too", () => {
    const first = { ...running, state: "returned", reason: "it crashed 3 times" } as const;
    const second = { ...first, name: "rome", reason: "it hung" };

    expect(decided([first, outside])).toEqual({
      type: "elsewhere",
      words: "athens rolled back from it: it crashed 3 times",
    });
    expect(decided([{ ...first, inStage: false }, second, outside])).toEqual({
      type: "stop",
      words: "athens rolled back from it: it crashed 3 times, and 1 more of 2",
    });
    expect(decided([first])).toMatchObject({ type: "stop" });
  });

  test("stops when more than a tenth returned, two at least", () => {
    const stage = (size: number, returned: number): WatchedCrawler[] =>
      Array.from({ length: size }, (_, at) => ({
        ...running,
        name: `crawler-${at}`,
        state: at < returned ? "returned" : "running",
      }));

    const types = ([size, returned]: readonly [number, number]) =>
      decided([...stage(size, returned), outside]).type;

    expect(
      (
        [
          [3, 1],
          [10, 1],
          [200, 20],
        ] as const
      ).map(types),
    ).toEqual(["advance", "advance", "advance"]);
    expect(
      (
        [
          [3, 2],
          [10, 2],
          [200, 21],
        ] as const
      ).map(types),
    ).toEqual(["stop", "stop", "stop"]);
  });

  describe("with one liar among 200", () => {
    const honest = Array.from({ length: 199 }, (_, at) => ({ ...running, name: `crawler-${at}` }));
    const liar = { ...running, name: "liar" };
    const lies: readonly [string, WatchedCrawler][] = [
      ["says that it returned", { ...liar, state: "returned" }],
      ["disappears", { ...liar, offlineSince: ago(100) }],
      ["says nothing", { ...liar, state: null, reportedAt: null }],
      ["reports again and again, as if it had just begun", { ...liar, reportedAt: now }],
      ["ships failures without end", { ...liar, fetches: 1e9, failures: 1e9 }],
    ];

    test.each(lies)("that %s, each larger stage moves on", (_, lie) => {
      const stages = [3, 10, 200].map((size) => [
        lie,
        ...honest.map((one, at) => (at < size - 1 ? one : { ...outside, name: one.name })),
      ]);

      expect(stages.map((crawlers) => decided(crawlers).type)).toEqual(["advance", "advance", "advance"]);
    });

    test.each(lies.filter(([what]) => !what.startsWith("reports")))(
      "that %s as the first, another one is tried",
      (_, lie) => {
        const others = honest.map(({ name }) => ({ ...outside, name }));

        expect(decided([lie, ...others]).type).toBe("elsewhere");
      },
    );

    test("that hides a bad release behind failures of its own, it is found all the same", () => {
      const failing = honest.slice(0, 9).map((one) => ({ ...one, fetches: 1000, failures: 100 }));
      const others = honest.slice(9).map(({ name }) => ({ ...outside, name }));
      const hiding = { ...outside, name: "liar", fetches: 1e9, failures: 1e9 };

      expect(decided([...failing, ...others, hiding])).toMatchObject({
        type: "stop",
        words: expect.stringContaining("fetches failed"),
      });
    });
  });

  test("does not stop for what crawlers outside of the stage say", () => {
    expect(decided([running, { ...outside, state: "returned" }]).type).toBe("advance");
  });

  test("stops when those who took it are gone and the others are not", () => {
    const gone = { ...running, name: "rome", offlineSince: ago(11) };
    const tried = { ...running, name: "turin", inStage: false };

    expect(decided([gone, outside])).toMatchObject({
      type: "elsewhere",
      words: expect.stringContaining("1 of 1"),
    });
    expect(decided([gone, tried, outside]).type).toBe("stop");
    expect(decided([{ ...gone, offlineSince: ago(9) }, outside]).type).toBe("advance");
  });

  test("does not stop for those that were gone before, or when as many of the others are", () => {
    const gone = { ...running, offlineSince: ago(30) };
    const before = { ...gone, state: null, offlineSince: ago(130) };

    expect(decided([running, before, outside]).type).toBe("advance");
    expect(decided([gone, { ...outside, offlineSince: ago(40) }]).type).toBe("advance");
  });

  test("stops when more of its fetches fail by the crawlers' fault, once there are enough of them", () => {
    const failing = { ...running, fetches: 100, failures: 4 };

    expect(decided([failing, { ...failing, name: "rome" }, outside])).toMatchObject({
      type: "stop",
      words: expect.stringContaining("8 of 200 fetches failed"),
    });
    expect(decided([{ ...failing, failures: 3 }, outside]).type).toBe("advance");
    expect(decided([{ ...failing, fetches: 49, failures: 49 }, outside]).type).toBe("advance");
  });
});

function decided(crawlers: readonly WatchedCrawler[]) {
  return decideStage({ crawlers, stageSince: ago(125), soakMinutes: 60, now });
}
