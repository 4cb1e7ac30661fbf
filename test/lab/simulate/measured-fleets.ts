/**
 * Fleets drawn at random from measured round trips, three 490 x 490 matrices of PlanetLab nodes: some nodes are
 * crawlers, the others sites. No hierarchy goes with them. Sites less than 1 ms from a crawler are left out: they
 * are nodes in the crawler's own building, as web sites rarely are.
 */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { LatencyInstance } from "#ops/world/compare";
import { SeededRandom } from "#ops/world/seeded-random";
import { type MatrixSlice, matrixFile, matrixSlices } from "../../lab/simulate/instances/named-instance.ts";
import { sharedData } from "../../support/shared-data.ts";

const slices = matrixSlices.map((slice) => sharedData(matrixFile(slice)));

/** Whether the matrices are there. */
export const hasMatrices = !slices.includes(null);

/** So many fleets of each matrix. */
export function measuredFleets(crawlers: number, perMatrix: number): LatencyInstance[] {
  const seeds = Array.from({ length: perMatrix }, (_, index) => index + 1);
  return slices.flatMap((path) => {
    const matrix = readMatrix(path!);
    return seeds.map((seed) => drawnFleet(matrix, crawlers, seed));
  });
}

/** Of a slice of time; only where the matrices are there. */
export const planetlabMatrix = (slice: MatrixSlice): Matrix =>
  readMatrix(slices[matrixSlices.indexOf(slice)]!);

type Matrix = readonly (readonly number[])[];

function readMatrix(path: string): Matrix {
  const lines = gunzipSync(readFileSync(path)).toString().trim().split("\n");
  return lines.map((line) => line.trim().split(/\s+/).map(Number));
}

function drawnFleet(matrix: Matrix, crawlers: number, seed: number): LatencyInstance {
  const random = new SeededRandom(seed);
  const nodes = matrix.map((_, node) => ({ node, order: random.next() })).sort((a, b) => a.order - b.order);
  const [fleet, others] = [nodes.slice(0, crawlers), nodes.slice(crawlers)];
  const host = { path: ["root", "all"], org: "", cc: "" };
  const rttMs = (a: { node: number }, b: { node: number }) => (a === b ? 0 : matrix[a.node]![b.node]!);
  const targets = others.map((site) => ({ ...host, rtt: fleet.map((crawler) => rttMs(crawler, site)) }));
  return {
    name: `${crawlers} of ${matrix.length}`,
    unit: "ms RTT",
    crawlers: fleet.map(() => host),
    crawlerRtt: fleet.map((a) => fleet.map((b) => rttMs(a, b))),
    targets: targets.filter(({ rtt }) => Math.min(...rtt) >= 1),
  };
}
