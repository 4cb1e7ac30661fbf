/**
 * Decodes content codings (RFC 9110 section 8.4.1, RFC 8878 for zstd) within limits of size and ratio, and lists those to
 * offer. A body that exceeds the limit is cut. A body that is broken, or inflates as no real page does, fails as a whole.
 * Trailing bytes are ignored.
 */
import zlib from "node:zlib";
import { Failure } from "../core/failure.ts";
import {
  type Decoder,
  gunzipBounded,
  type InflateBounds,
  type Inflated,
  inflateBounded,
  isCutShort,
} from "../extract/unpack-gzip.ts";

const inflateInlineBytes = 256 * 1024;
/** A body that exceeds both this ratio and this size is a decompression bomb. */
const maxRatio = 200;
const anyRatioBytes = 1024 * 1024;
/** RFC 9659 limits zstd windows on the web to 8 MiB. */
const zstdWindowLog = 23;
const maxCodings = 3;

export type Coding = "gzip" | "deflate" | "br" | "zstd";

export interface Decoded {
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

interface Packed {
  readonly bytes: Buffer;
  /** True if the body was cut, so that its missing end is not an error. */
  readonly cut: boolean;
  readonly limit: number;
}

type Options = zlib.ZlibOptions & zlib.BrotliOptions;

interface Codec {
  whole(bytes: Buffer, options: Options): Buffer;
  inPieces(bytes: Buffer, bounds: InflateBounds, options: Options): Promise<Inflated>;
  /** Estimates the decoded size at no cost. The sender may have stated it wrongly. */
  guess(bytes: Buffer): number;
  /** The value of `finishFlush` for truncated input. */
  readonly softEnd: number;
  readonly options?: Options;
}

/** Node has zstd from 22.15 on, but the types of Node 20 lack it. */
const newer = zlib as unknown as {
  readonly zstdDecompressSync?: Codec["whole"];
  readonly createZstdDecompress?: (options: Options) => Decoder;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number; readonly ZSTD_e_flush?: number };
};

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants;

/** Markup compresses five to ten times. At most `mostGuessedBytes` are reserved for a guess. */
const usualRatio = 8;
const mostGuessedBytes = 256 * 1024;
/** The default of node:zlib. */
const leastChunkBytes = 16 * 1024;

const usualGuess = (bytes: Buffer) => Math.min(mostGuessedBytes, usualRatio * bytes.length);

/** A gzip member ends with its length modulo 2^32 (RFC 1952 section 2.3.1). */
const gzipGuess = (bytes: Buffer) => (bytes.length < 18 ? 0 : bytes.readUInt32LE(bytes.length - 4));

const codecs: Readonly<Record<Coding, Codec | null>> = {
  gzip: { whole: zlib.gunzipSync, inPieces: gunzipBounded, guess: gzipGuess, softEnd: Z_SYNC_FLUSH },
  deflate: {
    whole: (bytes, options) =>
      isZlib(bytes) ? zlib.inflateSync(bytes, options) : zlib.inflateRawSync(bytes, options),
    inPieces: async (bytes, bounds, options) => {
      if (!isZlib(bytes)) return inflateBounded(zlib.createInflateRaw(options), bytes, bounds);
      const inflated = await inflateBounded(zlib.createInflate(options), bytes, bounds);
      if (!isCutShort(inflated.error)) return inflated;
      // A body that lacks only part of its checksum is complete, because the data mark their own end.
      const data = await inflateBounded(zlib.createInflateRaw(options), bytes.subarray(2), bounds);
      return data.error === null ? data : inflated;
    },
    guess: usualGuess,
    softEnd: Z_SYNC_FLUSH,
  },
  br: {
    whole: zlib.brotliDecompressSync,
    inPieces: (bytes, bounds, options) => inflateBounded(zlib.createBrotliDecompress(options), bytes, bounds),
    guess: usualGuess,
    softEnd: BROTLI_OPERATION_FLUSH,
  },
  zstd: zstdCodec(),
};

/** The value of `accept-encoding`, with the codings that this runtime can decode. */
export const acceptedCodings = (Object.keys(codecs) as Coding[])
  .filter((coding) => codecs[coding] !== null)
  .join(", ");

/**
 * Returns the codings in the order of their application. A value that is not a coding (`none`, `utf-8`, a type) is skipped, as
 * browsers do, if the body is text. `unknown` names the first such value. Throws a Failure.
 */
export function codingsOf(header: string | readonly string[] | undefined): {
  readonly codings: Coding[];
  readonly unknown: string | null;
} {
  const names = String(header ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity");
  if (names.length > maxCodings) {
    throw new Failure("bad-encoding", `${names.length} content codings in a row`);
  }
  const unasked = names.find((name) => !isCoding(name) && otherCodings.has(name));
  if (unasked !== undefined) throw new Failure("bad-encoding", `content coding ${unasked} was not asked for`);
  const codings = names.map((name) => (name === "x-gzip" ? "gzip" : name)).filter(isCoding);
  const unknown = names.find((name) => name !== "x-gzip" && !isCoding(name)) ?? null;
  return { codings, unknown };
}

/** Codings that exist (IANA's registry, and sdch) but cannot be decoded here. Older runtimes also lack zstd. */
const otherCodings = new Set(
  "aes128gcm br compress dcb dcz exi pack200-gzip sdch x-compress zstd".split(" "),
);

const isCoding = (name: string): name is Coding =>
  Object.hasOwn(codecs, name) && codecs[name as Coding] !== null;

/** Throws a Failure: `bad-encoding` or `decompression-bomb`. */
export async function decodeBody(coding: Coding, packed: Packed): Promise<Decoded> {
  const { bytes, cut } = packed;
  if (bytes.length === 0) return { bytes, truncated: cut };
  if (!cut && bytes.length <= inflateInlineBytes) {
    const whole = decodeInline(coding, packed);
    if (whole !== null) return { bytes: whole, truncated: false };
  }
  return decodeInPieces(coding, packed);
}

/** Returns null if the body is too large or broken. Decoding it in pieces then finds out which. */
function decodeInline(coding: Coding, { bytes, limit }: Packed): Buffer | null {
  const { whole, guess, options } = codecs[coding]!;
  const maxOutputLength = Math.min(limit, ratioBound(bytes.length));
  // If the guess is right, the extra byte avoids a second chunk and a copy.
  const chunkSize = Math.max(leastChunkBytes, Math.min(guess(bytes), maxOutputLength) + 1);
  try {
    return whole(bytes, { ...options, maxOutputLength, chunkSize });
  } catch {
    return null;
  }
}

async function decodeInPieces(coding: Coding, { bytes, cut, limit }: Packed): Promise<Decoded> {
  const { inPieces, softEnd, options } = codecs[coding]!;
  const check = (outputBytes: number, inputBytes: number) =>
    outputBytes > ratioBound(inputBytes)
      ? new Failure("decompression-bomb", `the ${coding} body inflates to over ${maxRatio} times its size`)
      : null;
  const how = { ...options, ...(cut ? { finishFlush: softEnd } : {}) };
  const { bytes: decoded, isCut, error } = await inPieces(bytes, { limit, check }, how);
  if (error instanceof Failure) throw error;
  if (error !== null && !(cut && decoded.length > 0)) throw broken(coding, error);
  return { bytes: decoded, truncated: cut || isCut };
}

const ratioBound = (inputBytes: number) => Math.max(anyRatioBytes, inputBytes * maxRatio);

/** `deflate` means zlib's format (RFC 9110 section 8.4.1.2), but some servers omit its header. */
function isZlib(bytes: Buffer): boolean {
  return bytes.length >= 2 && (bytes[0]! & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0;
}

function zstdCodec(): Codec | null {
  const { zstdDecompressSync, createZstdDecompress, constants } = newer;
  if (zstdDecompressSync === undefined || createZstdDecompress === undefined) return null;
  return {
    whole: zstdDecompressSync,
    inPieces: (bytes, bounds, options) => inflateBounded(createZstdDecompress(options), bytes, bounds),
    guess: usualGuess,
    softEnd: constants.ZSTD_e_flush ?? 0,
    options: { params: { [constants.ZSTD_d_windowLogMax ?? 100]: zstdWindowLog } },
  };
}

function broken(coding: Coding, error: unknown): Failure {
  const why = error instanceof Error ? error.message : String(error);
  return new Failure("bad-encoding", `the ${coding} body is broken: ${why}`, { cause: error });
}
