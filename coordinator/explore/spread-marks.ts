/**
 * Marks that can be found: where few cells of a tile have a value, one pixel of a quarter of a million addresses would
 * be looked for in vain. Each of them is drawn as a small square then, over what has no value, and never over another
 * mark. What the read-out says of a place is not touched by it.
 */
import { tileSide } from "./tile-picture.ts";

/** Colours below it have no value (colour-scales). */
const firstValue = 3;
/** A tile with more marks than one pixel in so many shows them well enough as they are. */
const sparseShare = 1 / 128;
/** Pixels on each side of the mark. */
const reach = 2;

/** Changes the pixels; true when marks were drawn larger. */
export function spreadMarks(pixels: Uint8Array): boolean {
  const marks: number[] = [];
  const most = pixels.length * sparseShare;
  for (let pixel = 0; pixel < pixels.length && marks.length <= most; pixel += 1) {
    if ((pixels[pixel] as number) >= firstValue) marks.push(pixel);
  }
  if (marks.length === 0 || marks.length > most) return false;
  const colours = marks.map((pixel) => pixels[pixel] as number);
  for (const [index, pixel] of marks.entries()) drawSquare(pixels, pixel, solid(colours[index] as number));
  for (const [index, pixel] of marks.entries()) pixels[pixel] = solid(colours[index] as number);
  return true;
}

/** The same colour, at its fullest: a step has three opacities. */
const solid = (colour: number): number => firstValue + 3 * Math.floor((colour - firstValue) / 3) + 2;

function drawSquare(pixels: Uint8Array, centre: number, colour: number): void {
  const [x, y] = [centre % tileSide, Math.floor(centre / tileSide)];
  for (let row = Math.max(0, y - reach); row <= Math.min(tileSide - 1, y + reach); row += 1) {
    for (let column = Math.max(0, x - reach); column <= Math.min(tileSide - 1, x + reach); column += 1) {
      const at = row * tileSide + column;
      if ((pixels[at] as number) < firstValue) pixels[at] = colour;
    }
  }
}
