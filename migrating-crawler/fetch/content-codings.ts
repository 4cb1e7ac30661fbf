/**
 * Content codings (RFC 9110 section 8.4.1, RFC 8878 for zstd): which are offered, and a body decoded within
 * bounds of size and of ratio. A body that is larger than the bound is cut; one that is broken, or inflates
 * as no real page does, is a failure, never half a page that looks whole. Bytes behind the end of what was packed are
 * passed over.
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

/** Larger compressed bodies are inflated off the main thread. */
const inflateInlineBytes = 256 * 1024;
/** A body that inflates beyond this many times its size, and beyond so many bytes, is a bomb. */
const maxRatio = 200;
const anyRatioBytes = 1024 * 1024;
/** RFC 9659: zstd on the web uses windows of at most 8 MiB. */
const zstdWindowLog = 23;
const maxCodings = 3;

export type Coding = "gzip" | "deflate" | "br" | "zstd";

export interface Decoded {
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

interface Packed {
  readonly bytes: Buffer;
  /** Known to be cut: its missing end is no fault. */
  readonly cut: boolean;
  /** Most bytes after decoding. */
  readonly limit: number;
}

type Options = zlib.ZlibOptions & zlib.BrotliOptions;

interface Codec {
  whole(bytes: Buffer, options: Options): Buffer;
  inPieces(bytes: Buffer, bounds: InflateBounds, options: Options): Promise<Inflated>;
  /** About how much the bytes decode to, as a guess that costs nothing; whoever packed them may have lied. */
  guess(bytes: Buffer): number;
  /** Given to `finishFlush` where the input is cut. */
  readonly softEnd: number;
  readonly options?: Options;
}

/** What the runtime has beyond Node 20's types: zstd, from 22.15 on. */
const newer = zlib as unknown as {
  readonly zstdDecompressSync?: Codec["whole"];
  readonly createZstdDecompress?: (options: Options) => Decoder;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number; readonly ZSTD_e_flush?: number };
};

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants;

/** Markup packs five to ten to one; more than this is not set aside for a guess. */
const usualRatio = 8;
const mostGuessedBytes = 256 * 1024;
/** What node:zlib sets aside by itself. */
const leastChunkBytes = 16 * 1024;

const usualGuess = (bytes: Buffer) => Math.min(mostGuessedBytes, usualRatio * bytes.length);

/** The length modulo 2^32 stands at the end of a member (RFC 1952 section 2.3.1). */
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
      // Without a part of its check sum it is whole, as the data themselves say.
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

/** For the request's `accept-encoding`: what this runtime can decode. */
export const acceptedCodings = (Object.keys(codecs) as Coding[])
  .filter((coding) => codecs[coding] !== null)
  .join(", ");

/**
 * In the order in which they were applied, each one that we asked for. What is no coding (`none`, `utf-8`, a type) is passed
 * over, as in browsers, if what remains is text: `unknown` names the first. Throws a Failure.
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

/** Codings that exist (IANA's registry, and sdch) and that we do not decode, zstd where the runtime cannot. */
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

/** Null when it is larger than it may be, or not as it should be: the pieces tell why. */
function decodeInline(coding: Coding, { bytes, limit }: Packed): Buffer | null {
  const { whole, guess, options } = codecs[coding]!;
  const maxOutputLength = Math.min(limit, ratioBound(bytes.length));
  // One byte more, so that a right guess needs no second piece, and nothing is copied together.
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

/** The most that so much input may inflate to. */
const ratioBound = (inputBytes: number) => Math.max(anyRatioBytes, inputBytes * maxRatio);

/** `deflate` is zlib's format by RFC 9110 section 8.4.1.2; some servers send it without the header. */
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
