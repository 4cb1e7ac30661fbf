/**
 * Pictures of few colours as PNG (RFC 2083, W3C PNG third edition): one byte a pixel into a palette with opacities,
 * no filter, deflated by node:zlib. A map tile takes a millisecond and a few KB.
 */
import { crc32, deflateSync } from "node:zlib";

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const [indexedColour, bitDepth] = [3, 8];
/** Tiles are made on request, and mostly even: more effort gains little. */
const level = 4;

export interface IndexedPicture {
  readonly width: number;
  readonly height: number;
  /** Row by row from the top; each names one of the palette's colours, 256 at most. */
  readonly pixels: Uint8Array;
  readonly palette: Palette;
}

export function indexedPng({ width, height, pixels, palette }: IndexedPicture): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bitDepth, indexedColour, 0, 0, 0], 8);
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1)
    rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(palette.colours.flat())),
    chunk("tRNS", Buffer.from(palette.opacities)),
    chunk("IDAT", deflateSync(rows, { level })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const framed = Buffer.alloc(typed.length + 8);
  framed.writeUInt32BE(data.length, 0);
  framed.set(typed, 4);
  framed.writeUInt32BE(crc32(typed), typed.length + 4);
  return framed;
}

export type Rgb = readonly [red: number, green: number, blue: number];

export const opacities = [110, 180, 255] as const;

/** Red, green, blue and opacity of each of a picture's colours. */
export interface Palette {
  readonly colours: readonly Rgb[];
  readonly opacities: readonly number[];
}
