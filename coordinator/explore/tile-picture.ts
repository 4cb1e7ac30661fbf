/** A tile as a picture: its cells where the curve puts them, 256 by 256. */

import { cellOfIndex } from "./hilbert.ts";
import { type CellPaint, cellPainter } from "./paint.ts";
import { cellsPerTile, type Tile, tileOrder } from "./space.ts";
import type { TileCells } from "./tile.ts";

export const tileSide = 2 ** tileOrder;

/** A colour's number for each pixel, row by row. */
export function tilePicture(tile: Tile, cells: TileCells, paint: CellPaint): Uint8Array {
  const pixels = new Uint8Array(cellsPerTile);
  const pixelOf = pixelsOfCells(tile);
  const colourOf = cellPainter(cells, paint);
  for (let cell = 0; cell < cellsPerTile; cell += 1) {
    const pixel = pixelOf[cell] as number;
    const odd = (((pixel >> tileOrder) ^ pixel) & 1) === 1;
    pixels[pixel] = colourOf(cell, odd);
  }
  return pixels;
}

/** Where on the whole map a tile's first pixel is, in tiles. */
export function tileCorner({ zoom, index }: Tile): { readonly x: number; readonly y: number } {
  return cellOfIndex(index, zoom);
}

/**
 * Within a tile the curve goes one of four ways, which its first and its last cell tell:
 *
 *   first at the top left, last at the top right or the bottom left; or
 *   first at the bottom right, last at the top right or the bottom left
 */
function pixelsOfCells({ zoom, index }: Tile): Uint16Array {
  const order = zoom + tileOrder;
  const first = cellOfIndex(index * cellsPerTile, order);
  const last = cellOfIndex((index + 1) * cellsPerTile - 1, order);
  const fromEnd = first.x % tileSide !== 0;
  const alongTop = last.x % tileSide !== 0;
  return ways[(fromEnd ? 2 : 0) + (alongTop ? 1 : 0)]?.() as Uint16Array;
}

const farthest = tileSide - 1;
const ways = [
  once((x, y) => [y, x]),
  once((x, y) => [x, y]),
  once((x, y) => [farthest - x, farthest - y]),
  once((x, y) => [farthest - y, farthest - x]),
];

/** Made when it is first needed: 128 KB each. */
function once(place: (x: number, y: number) => readonly [x: number, y: number]): () => Uint16Array {
  let made: Uint16Array | null = null;
  return () => {
    made ??= Uint16Array.from({ length: cellsPerTile }, (_, cell) => {
      const at = cellOfIndex(cell, tileOrder);
      const [x, y] = place(at.x, at.y);
      return y * tileSide + x;
    });
    return made;
  };
}
