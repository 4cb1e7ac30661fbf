/**
 * Instances by name, as `simulate delegation --instance` takes them: `cities:50:7` are 50 crawlers in the model of
 * cities, made by seed 7. Every family is a line of the table.
 */
import { UsageError } from "#core/errors";
import { worldLimits } from "../../world/generate-world.ts";
import { generatedSource, type InstanceSource, type Tuning } from "../repeat-policies.ts";
import { citiesInstance } from "./cities.ts";
import { delaySpaceInstance } from "./delay-space.ts";
import { drawnFleet, type LatencyMatrix, type TreeKind } from "./drawn-fleet.ts";
import type { InstanceSize } from "./drawn-instance.ts";

/** Slices of time of the measured 490 × 490 matrices. */
export const matrixSlices = [1, 9, 18] as const;
export type MatrixSlice = (typeof matrixSlices)[number];

/** The file in the folder of shared data. */
export const matrixFile = (slice: MatrixSlice) => `latency/PlanetLabData_${slice}.gz`;

export interface InstanceFamily {
  readonly name: string;
  readonly words: string;
  readonly tuning: Tuning;
  /** The measured matrix that it needs; null: it is made of nothing but its seed. */
  readonly matrix: MatrixSlice | null;
  source(size: FamilySize, matrix: LatencyMatrix | null): InstanceSource;
}

export type FamilySize = Omit<InstanceSize, "seed">;

/** Fleets from these matrices are what the expected saving of a probe was fitted to. */
const drawn = (slice: MatrixSlice, tree: TreeKind): InstanceFamily => ({
  name: tree === "nodes" ? `planetlab-${slice}` : `planetlab-${slice}-loose`,
  words: `drawn from a measured matrix, with a tree ${tree === "nodes" ? "of its nodes" : "that says little"}`,
  tuning: "kind",
  matrix: slice,
  source: (size, matrix) => ({
    seedChanges: "world",
    tuning: "kind",
    instance: (seed) => drawnFleet(matrix!, { ...size, seed, tree }),
  }),
});

const modelled = (
  name: string,
  words: string,
  instanceOf: (size: InstanceSize) => ReturnType<InstanceSource["instance"]>,
): InstanceFamily => ({
  name,
  words,
  tuning: "none",
  matrix: null,
  source: (size) => ({
    seedChanges: "world",
    tuning: "none",
    instance: (seed) => instanceOf({ ...size, seed }),
  }),
});

export const instanceFamilies: readonly InstanceFamily[] = [
  {
    name: "world",
    words: "a generated world, as --world",
    tuning: "kind",
    matrix: null,
    source: generatedSource,
  },
  modelled("cities", "networks with routes and registries over cities", citiesInstance),
  modelled("delay-space", "clusters in a delay space, with detours", delaySpaceInstance),
  ...matrixSlices.flatMap((slice) => [drawn(slice, "nodes"), drawn(slice, "loose")]),
];

export function familyOf(name: string): InstanceFamily | null {
  return instanceFamilies.find((family) => family.name === name) ?? null;
}

export interface InstanceName {
  readonly family: InstanceFamily;
  readonly crawlers: number;
  /** Null: not said. */
  readonly seed: number | null;
}

const mostSeed = 0xffff_ffff;

/** Throws UsageError for what is none. */
export function parseInstanceName(text: string): InstanceName {
  const shown = `"${text.slice(0, 60)}"`;
  const [name = "", crawlers = "", seed, ...more] = text.split(":");
  const family = familyOf(name);
  if (family === null) {
    const known = instanceFamilies.map((one) => one.name).join(", ");
    throw new UsageError(
      `--instance ${shown}: "${name.slice(0, 40)}" is no family of instances: ${known} are`,
    );
  }
  if (more.length > 0) {
    throw new UsageError(`--instance ${shown}: family:crawlers or family:crawlers:seed is expected`);
  }
  return {
    family,
    crawlers: wholeNumber(crawlers, { shown, what: "crawlers", from: 1, to: worldLimits.crawlers }),
    seed: seed === undefined ? null : wholeNumber(seed, { shown, what: "seed", from: 0, to: mostSeed }),
  };
}

function wholeNumber(
  text: string,
  of: { readonly shown: string; readonly what: string; readonly from: number; readonly to: number },
): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= of.from && value <= of.to) return value;
  throw new UsageError(
    `--instance ${of.shown}: ${of.what} is "${text.slice(0, 20)}": must be a whole number from ${of.from} to ${of.to}`,
  );
}
