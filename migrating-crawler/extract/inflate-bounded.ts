/** Bytes through a decoder of node:zlib, off the main thread, until there is enough of what comes out. */
import type { Transform } from "node:stream";

/** A decoder of node:zlib: counts the bytes that it has consumed. */
export type Decoder = Transform & { readonly bytesWritten: number };

export interface Inflated {
  /** At most as many as were wanted. */
  readonly bytes: Buffer;
  /** There was more. */
  readonly isCut: boolean;
  /** Why the decoder stopped before its end; null when it did not. */
  readonly error: Error | null;
}

export interface InflateBounds {
  readonly limit: number;
  /** Looked at with each piece; an error ends it. */
  readonly check?: (outputBytes: number, inputBytes: number) => Error | null;
}

/** Never throws: a broken or cut input gives what could be decoded of it, with the error. */
export function inflateBounded(
  decoder: Decoder,
  input: Buffer,
  { limit, check }: InflateBounds,
): Promise<Inflated> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let length = 0;
    const end = (isCut: boolean, error: Error | null) => {
      decoder.destroy();
      resolve({ bytes: Buffer.concat(pieces, Math.min(length, limit)), isCut, error });
    };
    decoder.on("data", (piece: Buffer) => {
      pieces.push(piece);
      length += piece.length;
      const error = check?.(length, decoder.bytesWritten) ?? null;
      if (error !== null || length > limit) end(length > limit, error);
    });
    decoder.once("end", () => end(false, null));
    decoder.once("error", (error) => end(false, error));
    decoder.end(input);
  });
}
