/** Bundles and signed files on disk: read within bounds, and written so that a half of one is never found. */
import { createHash } from "node:crypto";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { UsageError } from "#core/errors";
import { maxBundleBytes } from "#protocol/release";
import { type Envelope, formatEnvelope, maxEnvelopeBytes, readEnvelope } from "#protocol/release-envelope";

export interface BundleFile {
  readonly bytes: Buffer;
  /** SHA-256, hex. */
  readonly digest: string;
}

export function readBundle(file: string): BundleFile {
  const bytes = readBounded(file, maxBundleBytes);
  if (bytes.length === 0) throw new UsageError(`${file} is empty, so it is no bundle`);
  return { bytes, digest: createHash("sha256").update(bytes).digest("hex") };
}

export function readSignedFile(file: string): Envelope {
  const read = readEnvelope(readBounded(file, maxEnvelopeBytes).toString("latin1"));
  if ("refused" in read) throw new UsageError(`${file}: ${read.refused}`);
  return read;
}

export function writeEnvelope(file: string, signed: Envelope): void {
  try {
    writeFileSync(`${file}.new`, formatEnvelope(signed));
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`, { cause: error });
  }
}

function readBounded(file: string, most: number): Buffer {
  try {
    if (statSync(file).size > most) throw new Error(`it has more than ${most} bytes`);
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`, { cause: error });
  }
}
