/** Impossible probe reports, on a line and on measured RTTs (PlanetLab), which sometimes violate the triangle inequality. */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type ProbedSubnet, type ProbingFleet, probeLies } from "#coordinator/crawl/trust/probe-plausibility";
import { asCrawlerId, asSubnetId, type CrawlerId } from "#core/ids";
import { SeededRandom } from "#ops/world/seeded-random";
import { sharedData } from "../support/shared-data.ts";

const nowhere = () => null;
type Report = (crawler: number, rttMs: number) => number;
const honestly: Report = (_, rttMs) => rttMs;

/** Crawlers on a line at these distances in ms from its end, and a target every 4 ms. */
const lineOf = (places: readonly number[]): ProbingFleet => ({
  crawlers: places.map((_, index) => asCrawlerId(index + 1)),
  rttMs: (from, to) => Math.abs(places[from - 1]! - places[to - 1]!) + 1,
  placeOf: nowhere,
});
const four: readonly number[] = [0, 40, 80, 120];
const line = lineOf(four);

/** These crawlers claim that everything is beside them. */
const lying =
  (...liars: readonly number[]): Report =>
  (crawler, rttMs) =>
    liars.includes(crawler) ? 3 : rttMs;

function probesOnLine(report: Report, places = four): ProbedSubnet[] {
  return Array.from({ length: 30 }, (_, target) => ({
    subnetId: asSubnetId(target + 1),
    probes: places.map((place, index) => ({
      crawlerId: asCrawlerId(index + 1),
      rttMs: report(index + 1, Math.abs(place - 4 * target) + 2),
    })),
  }));
}

describe("on a line", () => {
  it("accuses a crawler that claims to be beside everything", () => {
    const lies = probeLies(probesOnLine(lying(1)), line);

    expect(lies).toMatchObject([{ crawlerId: asCrawlerId(1) }]);
    expect(lies[0]!.subnets.length).toBeGreaterThan(10);
  });

  it("accuses several liars in turn, ignoring the word of those accused before", () => {
    const six = [0, 20, 40, 80, 100, 120];
    const lies = probeLies(probesOnLine(lying(1, 6), six), lineOf(six));

    expect(lies.map(({ crawlerId }) => crawlerId).sort()).toEqual([1, 6]);
  });

  it.each<[string, Report]>([
    ["reports what it measured", honestly],
    ["is slow, for instance on a busy machine", (crawler, rttMs) => (crawler === 2 ? rttMs + 400 : rttMs)],
  ])("does not accuse a crawler that %s", (_, report) => {
    expect(probeLies(probesOnLine(report), line)).toEqual([]);
  });

  it("ignores distances that the suspect itself states", () => {
    const stated = (from: CrawlerId, to: CrawlerId) => (from === 1 ? 1 : line.rttMs(from, to));
    const lies = probeLies(probesOnLine(lying(1)), { ...line, rttMs: stated });

    expect(lies.map(({ crawlerId }) => crawlerId)).toEqual([1]);
  });

  it("does not believe a single witness, which may be the liar", () => {
    const two = probesOnLine(lying(1)).map(({ subnetId, probes }) => ({
      subnetId,
      probes: [probes[0]!, probes[3]!],
    }));

    expect(probeLies(two, line)).toEqual([]);
  });

  it("compares with the speed of light when partners state their locations", () => {
    // Athens, New York, Tokyo, Sydney; RTTs between the crawlers are unknown.
    const sites = [
      { latitude: 38, longitude: 24 },
      { latitude: 41, longitude: -74 },
      { latitude: 36, longitude: 140 },
      { latitude: -34, longitude: 151 },
    ];
    const stated = {
      crawlers: line.crawlers,
      rttMs: () => null,
      placeOf: (id: CrawlerId) => sites[id - 1] ?? null,
    };
    const nearEach = Array.from({ length: 30 }, (_, target) => ({
      subnetId: asSubnetId(target + 1),
      probes: [1, 2 + (target % 3)].map((id) => ({ crawlerId: asCrawlerId(id), rttMs: 5 })),
    }));

    expect(probeLies(nearEach, stated)).toMatchObject([{ crawlerId: asCrawlerId(1) }]);
  });
});

/** 490 × 490 matrices of PlanetLab nodes at three times. */
const matrixFiles = [1, 9, 18].map((slice) => sharedData(`latency/PlanetLabData_${slice}.gz`));
const hasMatrices = !matrixFiles.includes(null);

type Matrix = readonly (readonly number[])[];

interface MeasuredFleet {
  readonly crawlerRtt: Matrix;
  /** From each target to each crawler. */
  readonly targets: Matrix;
}

function measuredFleets(crawlers: number, perMatrix: number): MeasuredFleet[] {
  const seeds = Array.from({ length: perMatrix }, (_, index) => index + 1);
  return matrixFiles.flatMap((file) => {
    const lines = gunzipSync(readFileSync(file!)).toString().trim().split("\n");
    const matrix = lines.map((text) => text.trim().split(/\s+/).map(Number));
    return seeds.map((seed) => drawnFleet(matrix, crawlers, seed));
  });
}

/** Draws crawlers from the nodes; nodes at least 1 ms from each of them are targets. */
function drawnFleet(matrix: Matrix, crawlers: number, seed: number): MeasuredFleet {
  const random = new SeededRandom(seed);
  const nodes = matrix.map((_, node) => ({ node, order: random.next() })).sort((a, b) => a.order - b.order);
  const fleet = nodes.slice(0, crawlers);
  const rttsOf = (from: number) => fleet.map(({ node }) => (node === from ? 0 : matrix[node]![from]!));
  return {
    crawlerRtt: fleet.map(({ node }) => rttsOf(node)),
    targets: nodes
      .slice(crawlers)
      .map(({ node }) => rttsOf(node))
      .filter((rtts) => Math.min(...rtts) >= 1),
  };
}

/** In each round three of the six nearest crawlers are asked. */
function roundsOf({ targets }: MeasuredFleet, report: Report): ProbedSubnet[] {
  const random = new SeededRandom(5);
  return targets.map((rtt, target) => {
    const nearest = rtt.map((rttMs, crawler) => ({ rttMs, crawler })).sort((a, b) => a.rttMs - b.rttMs);
    const asked = nearest
      .slice(0, 6)
      .sort(() => random.next() - 0.5)
      .slice(0, 3);
    const liar = nearest.filter(
      ({ crawler }) => crawler === 0 && target % 3 === 0 && !asked.some((one) => one.crawler === 0),
    );
    return {
      subnetId: asSubnetId(target + 1),
      probes: [...asked, ...liar].map(({ crawler, rttMs }) => ({
        crawlerId: asCrawlerId(crawler + 1),
        rttMs: report(crawler, rttMs),
      })),
    };
  });
}

const fleetOf = ({ crawlerRtt }: MeasuredFleet): ProbingFleet => ({
  crawlers: crawlerRtt.map((_, index) => asCrawlerId(index + 1)),
  rttMs: (from, to) => crawlerRtt[from - 1]![to - 1]!,
  placeOf: nowhere,
});

describe.runIf(hasMatrices)("on measured round trips", () => {
  const fleets = hasMatrices ? measuredFleets(12, 8) : [];

  it("accuses no honest crawler in 24 fleets", () => {
    const accused = fleets.flatMap((fleet) => probeLies(roundsOf(fleet, honestly), fleetOf(fleet)));

    expect(accused).toEqual([]);
  });

  it("accuses in each fleet only the crawler that is beside everything", () => {
    const accused = fleets.map((fleet) => {
      const rounds = roundsOf(fleet, (crawler, rttMs) => (crawler === 0 ? Math.min(rttMs, 5) : rttMs));
      return probeLies(rounds, fleetOf(fleet)).map(({ crawlerId }) => crawlerId);
    });

    expect(new Set(accused.flat())).toEqual(new Set([1]));
    expect(accused.every((lies) => lies.length === 1)).toBe(true);
  });
});
