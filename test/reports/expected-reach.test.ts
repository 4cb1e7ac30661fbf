/** How near a crawler in a place would be, from what was measured. */
import { describe, expect, it } from "vitest";
import type { CrawlPiece, MeasuredPiece } from "#coordinator/tell/reports/crawl-pieces";
import { expectedReach, leastInPlace } from "#coordinator/tell/reports/placement";
import { adviseSites } from "#coordinator/tell/reports/reports";
import { asCrawlerId, asHolderId, asSubnetId, type CrawlerId } from "#core/ids";

const home = { medianMs: 10, spreadMs: 2, subnets: 40, country: null };
let ids = 0;

/** A subnet with the measurements of crawlers 1, 2 …; the first has it. */
function subnet(
  country: string,
  rttsMs: readonly number[],
  { holder = null as number | null, pages = 10 } = {},
) {
  const piece: MeasuredPiece = {
    ...{ subnetId: asSubnetId(++ids), crawlerId: asCrawlerId(1), rttMs: rttsMs[0]!, country },
    holderId: holder === null ? null : asHolderId(holder),
    ...{ isAnycast: false, isDisplaced: false, decidedAt: null, hosts: 1, pages: 1, pagesPerDay: pages },
  };
  return { piece, measured: new Map(rttsMs.map((ms, at) => [asCrawlerId(at + 1), ms])) };
}

type Known = ReturnType<typeof subnet>;

const measuredOf = (all: readonly Known[]) => {
  const known = new Map<CrawlPiece, ReadonlyMap<CrawlerId, number>>(
    all.map(({ piece, measured }) => [piece, measured]),
  );
  return (piece: CrawlPiece) => known.get(piece) ?? new Map<CrawlerId, number>();
};

const reachOf = (all: readonly Known[]) =>
  expectedReach(
    all.map(({ piece }) => piece),
    { measuredOf: measuredOf(all), homeRtt: () => home, served: new Set(["GR"]) },
  );

const india = (rttsMs: readonly number[]) => Array.from({ length: leastInPlace }, () => subnet("IN", rttsMs));

describe("a crawler in a place without one", () => {
  it("is expected to be as near to its subnets as crawlers are at home", () => {
    const own = subnet("IN", [124]);

    expect(reachOf([own]).reachOf(own.piece)).toEqual([{ site: "country:IN", rttMs: 10, spreadMs: 2 }]);
  });

  it("is expected to reach a neighbour at the same distance from the same crawlers", () => {
    const neighbour = subnet("PK", [121, 82]);
    const all = [...india([120, 80]), neighbour];

    const reach = reachOf(all)
      .reachOf(neighbour.piece)
      .find(({ site }) => site === "country:IN")!;

    // Between 2 and 162 ms: the second crawler adds nothing. Some gain is to be expected.
    expect(reach.rttMs).toBeLessThan(121);
    expect(reach.rttMs).toBeGreaterThan(80);
  });

  it("is not expected to be nearer where one crawler's distances vary by as much as today's RTT", () => {
    const elsewhere = subnet("BR", [60, 30]);

    const sites = reachOf([...india([200, 180]), elsewhere])
      .reachOf(elsewhere.piece)
      .map(({ site }) => site);

    expect(sites).toEqual(["country:BR"]);
  });

  it("is expected nowhere from one measurement or an outlier among several", () => {
    const neighbour = subnet("PK", [121]);
    const outlier = [...india([120]).slice(1), subnet("IN", [900])];

    expect(reachOf([subnet("IN", [120]), neighbour]).reachOf(neighbour.piece)).toHaveLength(1);
    expect(
      reachOf([...outlier, neighbour])
        .reachOf(neighbour.piece)
        .map(({ site }) => site),
    ).toContain("country:IN");
  });

  it("does not count what is far from the middle of its place as its own", () => {
    const all = [...india([120]), subnet("IN", [200])];

    expect(reachOf(all).reachOf(all.at(-1)!.piece)).toEqual([{ site: "country:IN", rttMs: 80, spreadMs: 2 }]);
  });
});

it("a holder's network is a place where its country has a crawler, once enough of it is measured", () => {
  const own = Array.from({ length: leastInPlace }, () => subnet("GR", [90], { holder: 7 }));

  expect(reachOf(own).reachOf(own[0]!.piece)).toEqual([{ site: "holder:7", rttMs: 10, spreadMs: 2 }]);
  expect(reachOf(own.slice(1)).places).toEqual([]);
});

it("the second place is chosen with the first in place: nothing is saved twice", () => {
  const all = [...india([120]), ...Array.from({ length: 5 }, () => subnet("BR", [60], { pages: 15 }))];
  const { chosen } = adviseSites(
    {
      ...{ pieces: all.map(({ piece }) => piece), crawlers: [], homeRtt: () => home },
      distances: { measuredOf: measuredOf(all) },
    },
    { most: 2 },
  );

  expect(chosen.map(({ site }) => site)).toEqual(["country:IN", "country:BR"]);
  expect(chosen[0]!.savedMsPages).toBeGreaterThanOrEqual(5 * 10 * 110);
});
