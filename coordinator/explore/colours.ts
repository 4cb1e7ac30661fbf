/**
 * What a cell is painted by, and with which of a picture's 256 colours. Categories take twelve colours that people
 * with the usual colour deficiencies tell apart (after P. Tol's and Okabe and Ito's sets, of a lightness that stands
 * out from white and from near black); the thirteenth looks like the first, in a chequered pattern, and so on.
 * Quantities take five steps of one scale from light to strong. How much of a cell is meant shows in how opaque it is.
 *
 *   0  nothing registered, clear    1  registered, and nobody's    2  registered, left out by the filter
 *   3 + 3·step + opacity            the value's step, in three opacities
 */

import { opacities, type Palette, type Rgb } from "../web/indexed-png.ts";
import { cellOfIndex, cellsPerTile, type Tile, tileOrder } from "./space.ts";
import { noRtt, type TileCells } from "./tile.ts";

export const colourings = ["crawler", "rtt", "load", "age", "registry"] as const;
export type Colouring = (typeof colourings)[number];

const categoryColours: readonly Rgb[] = [
  [0, 114, 178],
  [230, 129, 0],
  [0, 148, 108],
  [204, 90, 160],
  [74, 164, 222],
  [190, 70, 40],
  [128, 110, 220],
  [158, 140, 20],
  [30, 160, 170],
  [150, 90, 60],
  [110, 150, 50],
  [200, 60, 90],
];

/** Dark on light ground and light on dark alike would need two pictures; these five are told apart on both. */
const stepColours: readonly Rgb[] = [
  [116, 190, 190],
  [64, 158, 190],
  [88, 112, 196],
  [150, 70, 170],
  [190, 40, 90],
];

export const nobodysColour: Rgb = [134, 150, 148];

/** Of several values together. */
export const othersColour: Rgb = [92, 104, 112];

/** Upper bounds of the steps but the last, which has none. */
export const rttStepsMs = [10, 30, 80, 150] as const;

export const ageStepsHours = [1, 24, 168, 720] as const;
export const loadStepsPagesPerDay = [1, 10, 100, 1000] as const;

const firstStep = 3;

export function paletteOf(colouring: Colouring): Palette {
  const steps = isCategorical(colouring) ? [...categoryColours, ...categoryColours.map(darker)] : stepColours;
  return {
    colours: [
      nobodysColour,
      nobodysColour,
      nobodysColour,
      ...steps.flatMap((colour) => [colour, colour, colour]),
    ],
    opacities: [0, 72, 26, ...steps.flatMap(() => opacities)],
  };
}

const isCategorical = (colouring: Colouring): boolean => colouring === "crawler" || colouring === "registry";

const darker = ([red, green, blue]: Rgb): Rgb => [
  Math.round(red * 0.55),
  Math.round(green * 0.55),
  Math.round(blue * 0.55),
];

/** As CSS and pictures name it. */
export const hexOf = (colour: Rgb): string =>
  `#${colour.map((part) => part.toString(16).padStart(2, "0")).join("")}`;

/** The colour of a category by its number from 1, and whether it is the patterned one. */
export function categoryLook(number: number): { readonly colour: Rgb; readonly patterned: boolean } {
  const index = number - 1;
  return {
    colour: categoryColours[index % categoryColours.length] as Rgb,
    patterned: index >= categoryColours.length,
  };
}

export const stepLook = (step: number): Rgb => stepColours[step] as Rgb;

export interface CellPaint {
  readonly colouring: Colouring;
  /** Seconds since 1970: ages are counted from here. */
  readonly nowSeconds: number;
}

/** Which of the palette's colours a cell has; `odd`: it is one of the dark squares of a chequered pattern. */
export type CellPainter = (cell: number, odd: boolean) => number;

function cellPainter(cells: TileCells, paint: CellPaint): CellPainter {
  const value = valuePainter(cells, paint);
  const { registered, chosen } = cells;
  return (cell, odd) => {
    if (registered[cell] === 0) return 0;
    return chosen[cell] === 0 ? 2 : value(cell, odd);
  };
}

function valuePainter(cells: TileCells, { colouring, nowSeconds }: CellPaint): CellPainter {
  const { chosen, delegated, registries: registered, crawlers, rtts, since, loads } = cells;
  const painters: Record<Colouring, CellPainter> = {
    registry: (cell, odd) => categoryPaint(registered[cell] as number, chosen[cell] as number, odd),
    crawler: (cell, odd) => categoryPaint(crawlers[cell] as number, delegated[cell] as number, odd),
    rtt: (cell) => rttPaint(rtts[cell] as number, delegated[cell] as number),
    age: (cell) => agePaint(since[cell] as number, delegated[cell] as number, nowSeconds),
    load: (cell) => loadPaint(loads[cell] as number),
  };
  return painters[colouring];
}

function categoryPaint(number: number, share: number, odd: boolean): number {
  if (number === 0) return 1;
  const index = number - 1;
  const dark = odd && index >= categoryColours.length ? categoryColours.length : 0;
  return paint((index % categoryColours.length) + dark, share);
}

function rttPaint(rtt: number, share: number): number {
  return rtt === noRtt ? 1 : paint(stepOf(rtt / 10, rttStepsMs), share);
}

function agePaint(since: number, share: number, nowSeconds: number): number {
  if (since === 0) return 1;
  return paint(stepOf(Math.max(0, nowSeconds - since) / 3600, ageStepsHours), share);
}

function loadPaint(pagesPerDay: number): number {
  return pagesPerDay <= 0 ? 1 : paint(stepOf(pagesPerDay, loadStepsPagesPerDay), 255);
}

/** A cell of which a sliver is meant is still seen. */
function paint(step: number, share: number): number {
  return firstStep + 3 * step + (share < 26 ? 0 : share < 128 ? 1 : 2);
}

/** How many bounds the value has reached. */
export function stepOf(value: number, bounds: readonly number[]): number {
  let step = 0;
  while (step < bounds.length && value >= (bounds[step] as number)) step += 1;
  return step;
}

// A tile as a picture: its cells where the curve puts them, 256 by 256.

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
