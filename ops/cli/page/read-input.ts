/** Reads a document from a file or standard input, up to the crawler's limit. */
import { closeSync, openSync, readSync } from "node:fs";
import { UsageError } from "#core/errors";

interface Input {
  readonly bytes: Buffer;
  /** The input was longer. */
  readonly cut: boolean;
}

/** Reads at most `mostBytes`. `-` is standard input. Throws a UsageError that names the file. */
export function readInput(source: string, mostBytes: number): Input {
  let descriptor: number | null = null;
  try {
    descriptor = source === "-" ? 0 : openSync(source, "r");
    return readBounded(descriptor, mostBytes);
  } catch (error) {
    throw new UsageError(`${source}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    if (descriptor !== null && descriptor !== 0) closeSync(descriptor);
  }
}

function readBounded(descriptor: number, mostBytes: number): Input {
  const bytes = Buffer.alloc(mostBytes + 1);
  let length = 0;
  while (length < bytes.length) {
    const read = readPiece(descriptor, bytes, length);
    if (read === 0) break;
    length += read;
  }
  return { bytes: Buffer.from(bytes.subarray(0, Math.min(length, mostBytes))), cut: length > mostBytes };
}

/** Returns 0 at the end. A pipe without data may report EAGAIN; a closed one may report EOF (Windows). */
function readPiece(descriptor: number, bytes: Buffer, at: number): number {
  for (;;) {
    try {
      return readSync(descriptor, bytes, at, bytes.length - at, null);
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "EOF") return 0;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}
