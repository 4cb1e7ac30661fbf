import { describe, expect, test } from "vitest";
import { decideStage, type WatchedCrawler } from "#coordinator/releases/staging";

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
      words: "1 run it, in good order for 90 of 60 minutes",
    });
  });

  test.each([
    ["nobody runs it", [{ ...running, state: null, reportedAt: null, offlineSince: ago(200) }], "nobody"],
    ["one has run it for too short a time", [running, { ...running, reportedAt: ago(59) }], "for 59 of 60"],
    ["one does not run it yet", [running, { ...running, name: "rome", state: null }], "rome was offered it"],
    ["it was not offered to anybody", [{ ...running, offeredAt: null, state: null }], "nobody"],
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

  test("stops when one returned, and says whose words", () => {
    const returned = { ...running, name: "rome", state: "returned", reason: "it crashed 3 times" } as const;

    expect(decided([running, returned, outside])).toEqual({
      type: "stop",
      words: "rome returned from it: it crashed 3 times",
    });
  });

  test("does not stop for what crawlers outside of the stage say", () => {
    expect(decided([running, { ...outside, state: "returned" }]).type).toBe("advance");
  });

  test("stops when those who took it are gone and the others are not", () => {
    const gone = { ...running, name: "rome", offlineSince: ago(11) };

    expect(decided([gone, outside])).toMatchObject({
      type: "stop",
      words: expect.stringContaining("1 of 1"),
    });
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

    expect(decided([failing, outside])).toMatchObject({
      type: "stop",
      words: expect.stringContaining("4 of 100 fetches failed"),
    });
    expect(decided([{ ...failing, failures: 3 }, outside]).type).toBe("advance");
    expect(decided([{ ...failing, fetches: 49, failures: 49 }, outside]).type).toBe("advance");
  });
});

function decided(crawlers: readonly WatchedCrawler[]) {
  return decideStage({ crawlers, stageSince: ago(125), soakMinutes: 60, now });
}
