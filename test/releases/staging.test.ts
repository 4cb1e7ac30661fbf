import { describe, expect, test } from "vitest";
import {
  decideStage,
  type ReleaseState,
  releaseFor,
  type StagedRelease,
  type SupervisedCrawler,
  stageMembers,
  type WatchedCrawler,
  withMembers,
} from "#coordinator/run/releases/staging";
import { asCrawlerId } from "#core/ids";

const now = new Date("2030-01-01T12:00:00Z");
const fleet = [...Array(40).keys()].map((number) => dock(number + 1));

describe("a stage", () => {
  test("of 5 % of 40 crawlers is three, the same three for every coordinator and order", () => {
    const release = staged({ stage: "percent", percent: 5 });

    const members = [...stageMembers(release, fleet)];

    expect(members).toHaveLength(3);
    expect([...stageMembers(release, [...fleet].reverse())].sort()).toEqual(members.sort());
  });

  test("of a share includes the first crawler and all smaller shares", () => {
    const first = asCrawlerId(17);
    const shares = [5, 10, 25, 50, 100].map((percent) =>
      stageMembers(staged({ stage: "percent", percent, firstCrawlerId: first }), fleet),
    );

    expect(shares.map(({ size }) => size)).toEqual([3, 4, 10, 20, 40]);
    expect(shares.every((members) => members.has(first))).toBe(true);
    for (const [at, members] of shares.slice(1).entries()) {
      expect([...(shares[at] ?? [])].every((crawlerId) => members.has(crawlerId))).toBe(true);
    }
  });

  test("starts with other crawlers for another release", () => {
    const percent = { stage: "percent", percent: 25 } as const;

    const [one, other] = ["a", "b"].map((letter) =>
      [...stageMembers(staged({ ...percent, digest: letter.repeat(64) }), fleet)].sort(),
    );

    expect(one).not.toEqual(other);
  });

  test("of a share of a small fleet is more than the first crawler", () => {
    const release = staged({ stage: "percent", percent: 5, firstCrawlerId: asCrawlerId(3) });

    expect(stageMembers(release, fleet.slice(0, 12)).size).toBe(3);
    expect(stageMembers(release, fleet.slice(2, 3))).toEqual(new Set([3]));
  });

  test("of none is empty, even if a crawler had it first", () => {
    expect(stageMembers(staged({ stage: "none", firstCrawlerId: asCrawlerId(3) }), fleet).size).toBe(0);
  });
});

describe("a crawler", () => {
  const old = staged({ version: "1.0.0", sequence: 10, digest: "0".repeat(64), stage: "all" });
  const middle = staged({ version: "1.1.0", sequence: 20, digest: "1".repeat(64), stage: "all" });
  const newest = staged({
    version: "1.2.0",
    sequence: 30,
    digest: "2".repeat(64),
    stage: "one",
    firstCrawlerId: asCrawlerId(2),
  });
  const releases = [newest, middle, old];

  test("is offered the newest release whose stage it is in", () => {
    expect(offered(dock(1, old.digest), releases)).toBe("1.1.0");
    expect(offered(dock(2, old.digest), releases)).toBe("1.2.0");
  });

  test("is not offered what it runs or anything older", () => {
    expect(offered(dock(1, middle.digest), releases)).toBeNull();
    expect(offered(dock(1, newest.digest), releases)).toBeNull();
  });

  test("is offered an older bundle that was signed again when what it runs was revoked", () => {
    const revoked = [{ ...newest, revoked: true }, middle, old];
    const anew = { ...middle, version: "1.1.1", sequence: 40 };

    expect(offered(dock(2, newest.digest), revoked)).toBeNull();
    expect(offered(dock(2, newest.digest), [anew, ...revoked])).toBe("1.1.1");
  });

  test.each([
    ["was revoked", { revoked: true }],
    ["expired", { expiresAt: now }],
    ["is signed by a retired key", { trusted: false }],
    ["is held", { stage: "none" }],
  ] satisfies [string, Partial<StagedRelease>][])("is not offered a release that %s", (_, differences) => {
    expect(offered(dock(1, old.digest), [{ ...middle, ...differences }, old])).toBeNull();
  });

  test("is not offered again what it rolled back from, but what it delayed or refused", () => {
    const after = (state: ReleaseState) => offered(dock(1, old.digest, [["1.1.0", state]]), [middle, old]);

    expect(after("returned")).toBeNull();
    expect((["refused", "pinned", "delayed", "running"] as const).map(after)).toEqual(Array(4).fill("1.1.0"));
  });
});

function dock(
  number: number,
  digest = "f".repeat(64),
  reports: [string, ReleaseState][] = [],
): SupervisedCrawler {
  return { crawlerId: asCrawlerId(number), name: `crawler-${number}`, digest, reports: new Map(reports) };
}

function staged(differences: Partial<StagedRelease>): StagedRelease {
  return {
    version: "1.0.0",
    sequence: 1,
    digest: "a".repeat(64),
    expiresAt: new Date("2030-02-01T00:00:00Z"),
    revoked: false,
    trusted: true,
    stage: "none",
    percent: null,
    firstCrawlerId: null,
    stageSince: null,
    soakMinutes: null,
    ...differences,
  };
}

function offered(crawler: SupervisedCrawler, releases: readonly StagedRelease[]): string | null {
  return releaseFor(crawler, withMembers(releases, [crawler]), now)?.version ?? null;
}

describe("automatic staging", () => {
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

  describe("a release with automatic stages", () => {
    test("advances when all who took it have run it for the soak time", () => {
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
      [
        "one does not run it yet",
        [running, { ...running, name: "rome", state: null }],
        "rome was offered it",
      ],
      ["it was not offered to anybody", [{ ...running, offeredAt: null, state: null }], "no crawler runs it"],
    ] satisfies [string, WatchedCrawler[], string][])("waits while %s", (_, members, words) => {
      expect(decided([...members, outside])).toMatchObject({
        type: "stay",
        words: expect.stringContaining(words),
      });
    });

    test("does not count its time in the previous stage", () => {
      const early = { crawlers: [running, outside], soakMinutes: 60, now };

      expect(decideStage({ ...early, stageSince: ago(59) }).type).toBe("stay");
      expect(decideStage({ ...early, stageSince: ago(60) }).type).toBe("advance");
    });

    test("does not wait for partners who pin or delay, nor for supervisors that refuse", () => {
      const aside = (["pinned", "delayed", "refused"] as const).map((state) => ({
        ...running,
        state,
        reportedAt: now,
      }));

      expect(decided([running, ...aside]).type).toBe("advance");
      expect(decided(aside).type).toBe("stay");
    });

    test("is tried by another crawler when the first rolled back, and stops when that one does too", () => {
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

    test("stops when more than a tenth rolled back, at least two", () => {
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

      test.each(lies)("that %s, each larger stage advances", (_, lie) => {
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

      test("that hides a bad release behind its own failures, it is still found", () => {
        const failing = honest.slice(0, 9).map((one) => ({ ...one, fetches: 1000, failures: 100 }));
        const others = honest.slice(9).map(({ name }) => ({ ...outside, name }));
        const hiding = { ...outside, name: "liar", fetches: 1e9, failures: 1e9 };

        expect(decided([...failing, ...others, hiding])).toMatchObject({
          type: "stop",
          words: expect.stringContaining("fetches failed"),
        });
      });
    });

    test("ignores reports of crawlers outside the stage", () => {
      expect(decided([running, { ...outside, state: "returned" }]).type).toBe("advance");
    });

    test("stops when those who took it are offline and the others are not", () => {
      const gone = { ...running, name: "rome", offlineSince: ago(11) };
      const tried = { ...running, name: "turin", inStage: false };

      expect(decided([gone, outside])).toMatchObject({
        type: "elsewhere",
        words: expect.stringContaining("1 of 1"),
      });
      expect(decided([gone, tried, outside]).type).toBe("stop");
      expect(decided([{ ...gone, offlineSince: ago(9) }, outside]).type).toBe("advance");
    });

    test("does not stop for those that were offline before, or when as many others are", () => {
      const gone = { ...running, offlineSince: ago(30) };
      const before = { ...gone, state: null, offlineSince: ago(130) };

      expect(decided([running, before, outside]).type).toBe("advance");
      expect(decided([gone, { ...outside, offlineSince: ago(40) }]).type).toBe("advance");
    });

    test("stops when more of its fetches fail by the crawlers' fault, once there are enough", () => {
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
});
