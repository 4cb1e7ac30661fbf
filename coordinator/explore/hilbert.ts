/**
 * The Hilbert curve: neighbours on the line of addresses stay neighbours on the map, and a CIDR block of even
 * length is a square (D. Hilbert 1891; the walk from quadrant to quadrant follows Warren, Hacker's Delight, 16-2).
 * An order of k covers 2^k by 2^k cells. Bits are taken by division: IPv6 needs more than 32 of them.
 *
 *   order 1:  0 3     x to the right, y downwards
 *             1 2
 */

/** At most: 4^26 cells are still exact numbers. */
export const deepestOrder = 26;

export interface Cell {
  readonly x: number;
  readonly y: number;
}

/** Where the cell of this number lies. */
export function cellOfIndex(index: number, order: number): Cell {
  let [x, y] = [0, 0];
  let rest = index;
  for (let side = 1; side < 2 ** order; side *= 2) {
    const quadrant = rest % 4;
    const right = quadrant >= 2 ? 1 : 0;
    const down = quadrant === 1 || quadrant === 2 ? 1 : 0;
    [x, y] = turned({ x, y, side, right, down });
    x += side * right;
    y += side * down;
    rest = Math.floor(rest / 4);
  }
  return { x, y };
}

/** The number of the cell, the other way. */
export function indexOfCell(cell: Cell, order: number): number {
  let { x, y } = cell;
  let index = 0;
  for (let side = 2 ** (order - 1); side >= 1; side /= 2) {
    const right = x >= side ? 1 : 0;
    const down = y >= side ? 1 : 0;
    index += side * side * (3 * right + (right === 1 ? -down : down));
    [x, y] = turned({ x: x - side * right, y: y - side * down, side, right, down });
  }
  return index;
}

interface Turning {
  readonly x: number;
  readonly y: number;
  /** Cells of a quadrant to a side. */
  readonly side: number;
  readonly right: 0 | 1;
  readonly down: 0 | 1;
}

/** The curve within its first quadrant is mirrored at one diagonal, within its last at the other. */
function turned({ x, y, side, right, down }: Turning): [x: number, y: number] {
  if (down === 1) return [x, y];
  return right === 1 ? [side - 1 - y, side - 1 - x] : [y, x];
}
