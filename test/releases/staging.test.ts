import { describe, expect, test } from "vitest";
import {
  type DockedCrawler,
  type ReleaseState,
  releaseFor,
  type StagedRelease,
  stageMembers,
  withMembers,
} from "#coordinator/run/releases/staging";
import { asCrawlerId } from "#core/ids";

const now = new Date("2030-01-01T12:00:00Z");
const fleet = [...Array(40).keys()].map((number) => dock(number + 1));

describe("a stage", () => {
  test("of 5 % of 40 crawlers is three, the same three whoever asks and in whatever order", () => {
    const release = staged({ stage: "percent", percent: 5 });

    const members = [...stageMembers(release, fleet)];

    expect(members).toHaveLength(3);
    expect([...stageMembers(release, [...fleet].reverse())].sort()).toEqual(members.sort());
  });

  test("of a share holds who got it first, and all of the smaller shares", () => {
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

  test("begins with other crawlers for another release", () => {
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

  test("that is none has nobody, even if somebody had it first", () => {
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

  test("is offered nothing that it runs, nor anything older", () => {
    expect(offered(dock(1, middle.digest), releases)).toBeNull();
    expect(offered(dock(1, newest.digest), releases)).toBeNull();
  });

  test("is offered an older bundle once that was signed anew, when what it runs was revoked", () => {
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

  test("is not offered again what it returned from, but what it put off or turned down", () => {
    const after = (state: ReleaseState) => offered(dock(1, old.digest, [["1.1.0", state]]), [middle, old]);

    expect(after("returned")).toBeNull();
    expect((["refused", "pinned", "delayed", "running"] as const).map(after)).toEqual(Array(4).fill("1.1.0"));
  });
});

function dock(
  number: number,
  digest = "f".repeat(64),
  reports: [string, ReleaseState][] = [],
): DockedCrawler {
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

function offered(crawler: DockedCrawler, releases: readonly StagedRelease[]): string | null {
  return releaseFor(crawler, withMembers(releases, [crawler]), now)?.version ?? null;
}
