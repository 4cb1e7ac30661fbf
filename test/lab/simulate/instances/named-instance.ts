/**
 * Instances by name, as `npm run lab -- simulate --instance` takes them: `delay-space:50:7` are 50 crawlers in
 * a delay space, made by seed 7. Every family is a line of the table.
 */
import { readFile, stat } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { SourceFileError, UsageError } from "#core/errors";
import { worldLimits } from "#ops/world/generate-world";
import { generatedSource, type InstanceSource, type Tuning } from "../repeat-policies.ts";
import { delaySpaceInstance } from "./delay-space.ts";
import { drawnFleet, type InstanceSize, type LatencyMatrix, type TreeKind } from "./drawn-fleet.ts";

/** Slices of time of the measured 490 × 490 matrices. */
export const matrixSlices = [1, 9, 18] as const;
export type MatrixSlice = (typeof matrixSlices)[number];

/** The file in the folder of shared data. */
export const matrixFile = (slice: MatrixSlice) => `latency/PlanetLabData_${slice}.gz`;

interface InstanceFamily {
  readonly name: string;
  readonly words: string;
  readonly tuning: Tuning;
  /** The measured matrix that it needs; null: it is made of nothing but its seed. */
  readonly matrix: MatrixSlice | null;
  source(size: FamilySize, matrix: LatencyMatrix | null): InstanceSource;
}

type FamilySize = Omit<InstanceSize, "seed">;

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

export const instanceFamilies: readonly InstanceFamily[] = [
  {
    name: "world",
    words: "a generated world, as --world",
    tuning: "kind",
    matrix: null,
    source: generatedSource,
  },
  {
    name: "delay-space",
    words: "clusters in a delay space, with detours",
    tuning: "none",
    matrix: null,
    source: (size) => ({
      seedChanges: "world",
      tuning: "none",
      instance: (seed) => delaySpaceInstance({ ...size, seed }),
    }),
  },
  ...matrixSlices.flatMap((slice) => [drawn(slice, "nodes"), drawn(slice, "loose")]),
];

export function familyOf(name: string): InstanceFamily | null {
  return instanceFamilies.find((family) => family.name === name) ?? null;
}

interface InstanceName {
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

/**
 * A measured matrix: gzipped text, a row of numbers in ms a line. The file comes from anywhere, so its size is bounded
 * before and after it is unpacked, and faults name file, line and value.
 */
const matrixLimits = {
  packedBytes: 32 * 1024 * 1024,
  textBytes: 128 * 1024 * 1024,
  nodes: 4000,
} as const;
/** An hour: no RTT on this planet is longer. */
const longestMs = 3_600_000;

/** Throws SourceFileError when the file cannot be read or is no such matrix. */
export async function readLatencyMatrix(file: string): Promise<LatencyMatrix> {
  return parseLatencyMatrix(await unpacked(file), file);
}

async function unpacked(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size > matrixLimits.packedBytes) {
      throw new SourceFileError(
        file,
        null,
        `${size} bytes; a matrix has at most ${matrixLimits.packedBytes}`,
      );
    }
    return gunzipSync(await readFile(file), { maxOutputLength: matrixLimits.textBytes }).toString("latin1");
  } catch (error) {
    if (error instanceof SourceFileError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new SourceFileError(file, null, `cannot be read: ${reason}`, { cause: error });
  }
}

/** The same for a text that is already here; `file` is what errors name. */
export function parseLatencyMatrix(text: string, file: string): LatencyMatrix {
  const lines = text.trim().split("\n");
  if (lines.length > matrixLimits.nodes) {
    throw new SourceFileError(file, null, `${lines.length} rows; a matrix has at most ${matrixLimits.nodes}`);
  }
  const matrix = lines.map((line, index) => {
    const cells = line.trim().split(/\s+/);
    if (cells.length !== lines.length) {
      throw new SourceFileError(file, index + 1, `${cells.length} values for ${lines.length} rows`);
    }
    return cells.map((cell) => readRtt(cell, file, index + 1));
  });
  checkSymmetry(matrix, file);
  return matrix;
}

function readRtt(cell: string, file: string, line: number): number {
  const rttMs = /^[\d.]+(e[+-]?\d+)?$/i.test(cell) ? Number(cell) : Number.NaN;
  if (rttMs >= 0 && rttMs <= longestMs) return rttMs;
  throw new SourceFileError(file, line, `"${cell.slice(0, 40)}" is no round trip in ms`);
}

function checkSymmetry(matrix: LatencyMatrix, file: string): void {
  matrix.forEach((row, index) => {
    for (let other = 0; other < index; other++) {
      const [there, back] = [row[other]!, matrix[other]![index]!];
      if (there === back) continue;
      throw new SourceFileError(
        file,
        index + 1,
        `value ${other + 1} is ${there}, the other way round ${back}`,
      );
    }
    if (row[index] !== 0) {
      throw new SourceFileError(
        file,
        index + 1,
        `value ${index + 1} is ${row[index]}, from a node to itself`,
      );
    }
  });
}
