/**
 * Reads a measured matrix of round trips: gzipped text, a row of numbers in ms a line. The file comes from anywhere,
 * so its size is bounded before and after it is unpacked, and faults name file, line and value.
 */
import { readFile, stat } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { SourceFileError } from "#core/errors";
import type { LatencyMatrix } from "./drawn-fleet.ts";

export const matrixLimits = {
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
