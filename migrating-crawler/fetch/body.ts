/**
 * Reads a response body within bounds: so many bytes off the wire, so many after decoding. A body that is
 * larger is cut and marked; one whose coding is broken is a failure, never half a page that looks whole.
 */
import {
  brotliDecompressSync,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  gunzipSync,
  inflateRawSync,
  inflateSync,
} from "node:zlib";
import { Failure, failureOf } from "../net/failure.ts";
import type { SiteAnswer } from "./site-client.ts";

/** Most body bytes that are kept, on the wire and decoded (issue of scale: real pages are 99.9 % smaller). */
export const maxBodyBytes = 5 * 1024 * 1024;
/** Larger compressed bodies are inflated off the main thread. */
const inflateInlineBytes = 256 * 1024;

export interface Body {
  readonly bytes: Buffer;
  readonly wireBytes: number;
  readonly truncated: boolean;
}

/** Asked before each piece is taken from the socket: the governor's rate. */
export type TakeBytes = (bytes: number) => Promise<void> | null;

/** The decoded body, at most `limit` bytes of it. Throws a Failure. Ends the answer's clocks. */
export async function readBody(answer: SiteAnswer, limit: number, take: TakeBytes): Promise<Body> {
  const coding = codingsOf(answer.headers["content-encoding"]);
  const wire = await readWire(answer, limit, take);
  if (coding.length === 0) return { ...wire, wireBytes: wire.bytes.length };
  let { bytes, truncated } = wire;
  for (const name of coding.toReversed()) {
    const decoded = await decode(name, bytes, { limit, cut: truncated });
    bytes = decoded.bytes;
    truncated ||= decoded.truncated;
  }
  return { bytes, truncated, wireBytes: wire.bytes.length };
}

/** Reads nothing more: closes the connection unless what is left is small. */
export async function dropBody(answer: SiteAnswer): Promise<void> {
  try {
    await answer.body.dump({ limit: 64 * 1024 });
  } catch {
    answer.body.destroy();
  } finally {
    answer.done();
  }
}

async function readWire(
  answer: SiteAnswer,
  limit: number,
  take: TakeBytes,
): Promise<{ readonly bytes: Buffer; readonly truncated: boolean }> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of answer.body as AsyncIterable<Buffer>) {
      answer.touch();
      await take(piece.length);
      pieces.push(piece);
      length += piece.length;
      if (length > limit) break;
    }
  } catch (error) {
    throw bodyFailure(error);
  } finally {
    answer.done();
  }
  const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, length);
  return length > limit ? { bytes: bytes.subarray(0, limit), truncated: true } : { bytes, truncated: false };
}

function bodyFailure(error: unknown): Failure {
  const failure = failureOf(error);
  if (failure.code !== "internal") return failure;
  return new Failure("connection-lost", `the body broke off: ${failure.message}`, { cause: error });
}

type Coding = "gzip" | "deflate" | "br";

/** At most three codings in a row, each one that we asked for. */
function codingsOf(header: string | string[] | undefined): Coding[] {
  const names = [header ?? []]
    .flat()
    .join(",")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  const codings = names.filter((name) => name !== "" && name !== "identity");
  if (codings.length > 3) throw new Failure("bad-encoding", `${codings.length} content codings in a row`);
  return codings.map((name) => {
    if (name === "gzip" || name === "x-gzip") return "gzip";
    if (name === "deflate" || name === "br") return name;
    throw new Failure("bad-encoding", `content coding ${name.slice(0, 40)} was not asked for`);
  });
}

interface DecodeBounds {
  readonly limit: number;
  /** The input is known to be cut: its missing end is no fault. */
  readonly cut: boolean;
}

async function decode(
  coding: Coding,
  bytes: Buffer,
  bounds: DecodeBounds,
): Promise<{ bytes: Buffer; truncated: boolean }> {
  if (bytes.length === 0) return { bytes, truncated: false };
  if (!bounds.cut && bytes.length <= inflateInlineBytes) {
    try {
      return { bytes: decodeInline(coding, bytes, bounds.limit), truncated: false };
    } catch (error) {
      if ((error as { code?: string }).code !== "ERR_BUFFER_TOO_LARGE") throw broken(coding, error);
    }
  }
  return decodeInPieces(coding, bytes, bounds);
}

function decodeInline(coding: Coding, bytes: Buffer, limit: number): Buffer {
  const options = { maxOutputLength: limit };
  if (coding === "gzip") return gunzipSync(bytes, options);
  if (coding === "br") return brotliDecompressSync(bytes, options);
  return isZlib(bytes) ? inflateSync(bytes, options) : inflateRawSync(bytes, options);
}

/** `deflate` is zlib's format by RFC 9110 section 8.4.1.2; some servers send it without the header. */
function isZlib(bytes: Buffer): boolean {
  return bytes.length >= 2 && (bytes[0]! & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0;
}

function decodeInPieces(
  coding: Coding,
  bytes: Buffer,
  bounds: DecodeBounds,
): Promise<{ bytes: Buffer; truncated: boolean }> {
  const decoder = decoderFor(coding, bytes, bounds.cut);
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let length = 0;
    decoder.on("data", (piece: Buffer) => {
      pieces.push(piece);
      length += piece.length;
      if (length <= bounds.limit) return;
      decoder.destroy();
      resolve({ bytes: Buffer.concat(pieces, bounds.limit), truncated: true });
    });
    decoder.once("end", () => resolve({ bytes: Buffer.concat(pieces, length), truncated: bounds.cut }));
    decoder.once("error", (error) => {
      if (bounds.cut && length > 0) resolve({ bytes: Buffer.concat(pieces, length), truncated: true });
      else reject(broken(coding, error));
    });
    decoder.end(bytes);
  });
}

function decoderFor(coding: Coding, bytes: Buffer, cut: boolean) {
  const options = cut ? { finishFlush: constants.Z_SYNC_FLUSH } : {};
  if (coding === "gzip") return createGunzip(options);
  if (coding === "br")
    return createBrotliDecompress(cut ? { finishFlush: constants.BROTLI_OPERATION_FLUSH } : {});
  return isZlib(bytes) ? createInflate(options) : createInflateRaw(options);
}

function broken(coding: Coding, error: unknown): Failure {
  const why = error instanceof Error ? error.message : String(error);
  return new Failure("bad-encoding", `the ${coding} body is broken: ${why}`, { cause: error });
}
