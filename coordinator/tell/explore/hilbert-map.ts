/**
 * The map of who crawls what. It shows a square of the address space as 64 by 64 cells along a Hilbert curve, on which
 * neighbouring addresses remain neighbours, and a CIDR block of even length is a square (D. Hilbert 1891; the walk from
 * quadrant to quadrant follows Warren, Hacker's Delight, 16-2). The squares are all of IPv4, the allocated part of IPv6,
 * 2000::/3 (IANA), and their sixteenths, down to where a cell is one address. A cell has the colour of the crawler with the
 * most subnets that start in it or, if none does, of the one that crawls the subnet around it.
 *
 *   the curve through four cells:  0 3     x to the right, y downwards
 *                                  1 2
 */
import { formatAddress, type IpAddress } from "#core/ip/address";
import type { IpRange } from "#core/ip/range";
import { type Counts, type ExploredWorld, nobody, type WorkTurns } from "./explored-world.ts";
import { firstPlaceFrom, placeOver, rangeAtPlace, type Span, spanStartingIn } from "./places.ts";

export interface Block {
  readonly family: 4 | 6;
  readonly first: bigint;
  readonly prefixLength: number;
}

/** The map has 2^6 cells per side. */
const mapOrder = 6;
const cellBits = 2 * mapOrder;

/** A square has four by four blocks. */
const blockBits = 4;

const roots: Readonly<Record<4 | 6, Block>> = {
  4: { family: 4, first: 0n, prefixLength: 0 },
  6: { family: 6, first: 1n << 125n, prefixLength: 3 },
};

const bitsOf = (family: 4 | 6): 32 | 128 => (family === 4 ? 32 : 128);
const sizeOf = ({ family, prefixLength }: Block): bigint => 1n << BigInt(bitsOf(family) - prefixLength);

/** Returns the smallest square that holds the whole range, or the first one. */
export function squareHolding({ family, first, last }: IpRange): Block {
  let square = roots[family];
  const isWithin = ({ first: from, ...rest }: Block) =>
    from <= first && last < from + sizeOf({ first: from, ...rest });
  if (!isWithin(square)) return square;
  while (square.prefixLength + 2 + cellBits <= bitsOf(family)) {
    const size = sizeOf(square) / 4n;
    const quarter = {
      ...square,
      first: (BigInt(first) / size) * size,
      prefixLength: square.prefixLength + 2,
    };
    if (!isWithin(quarter)) break;
    square = quarter;
  }
  return square;
}

/** Returns the path from the first square to this one. */
export function squaresAbove({ family, first, prefixLength }: Block): Block[] {
  const above: Block[] = [];
  for (let length = roots[family].prefixLength; length < prefixLength; length += blockBits) {
    const free = BigInt(bitsOf(family) - length);
    above.push({ family, first: (first >> free) << free, prefixLength: length });
  }
  return above;
}

export function blockText({ family, first, prefixLength }: Block): string {
  return `${formatAddress(addressOf(family, first))}/${prefixLength}`;
}

const addressOf = (family: 4 | 6, value: bigint): IpAddress =>
  family === 4 ? { family, value: Number(value) } : { family, value };

function rangeOfBlock(block: Block): IpRange {
  const { family, first } = block;
  const last = first + sizeOf(block) - 1n;
  return family === 4 ? { family, first: Number(first), last: Number(last) } : { family, first, last };
}

/** Returns the square's sixteen blocks by address, each with its corner in the picture. */
export function blocksOf(square: Block): readonly (Cell & { readonly block: Block })[] {
  const prefixLength = square.prefixLength + blockBits;
  const size = sizeOf({ ...square, prefixLength });
  const cells = 2 ** (mapOrder - blockBits / 2);
  return Array.from({ length: 2 ** blockBits }, (_, index) => {
    const { x, y } = cellOfIndex(index, blockBits / 2);
    const block = { ...square, prefixLength, first: square.first + BigInt(index) * size };
    return { block, x: cells * x, y: cells * y };
  });
}

/** Returns the subnets that start in the block and are not larger than it. */
export function spanWithin({ columns }: ExploredWorld, block: Block): Span {
  const range = rangeOfBlock(block);
  let { from, to } = spanStartingIn(columns, range);
  const reachesBeyond = (at: IpRange) => at.first === range.first && at.last > range.last;
  while (from < to && reachesBeyond(rangeAtPlace(columns, from))) from += 1;
  return { from, to };
}

/** Marks cells in which nothing is registered. */
const unregistered = -1;

/** Returns for each crawler (or `nobody`) the cells in its colour, as an SVG path with one unit per cell. */
export async function drawMap(
  world: ExploredWorld,
  square: Block,
  turns: WorkTurns,
): Promise<ReadonlyMap<number, string>> {
  const side = 2 ** mapOrder;
  const cells = Array.from({ length: side }, () => new Int32Array(side));
  const size = sizeOf(square) >> BigInt(cellBits);
  const placeFrom = (index: number) =>
    firstPlaceFrom(world.columns, square.family, square.first + BigInt(index) * size);
  let from = placeFrom(0);
  for (let index = 0; index < side * side; index += 1) {
    const to = placeFrom(index + 1);
    const { x, y } = cellOfIndex(index, mapOrder);
    const address = addressOf(square.family, square.first + BigInt(index) * size);
    const drawn = from < to ? withMost(world.crawlers.known({ from, to })) : around(world, address);
    (cells[y] as Int32Array)[x] = drawn;
    from = to;
    if (index % 16 === 0) await turns.breathe();
  }
  return pathsOf(cells);
}

/** A cell is nobody's only if no crawler has any of it, because few registered subnets are crawled and people look for those. */
function withMost(counts: Counts): number {
  let [best, most]: [number, number] = [nobody, 0];
  for (const [crawler, count] of counts)
    if (crawler !== nobody && count > most) [best, most] = [crawler, count];
  return best;
}

function around(world: ExploredWorld, address: IpAddress): number {
  const place = placeOver(world.columns, address);
  return place < 0 ? unregistered : world.crawlers.at(place);
}

/** Adjacent cells of one colour become one rectangle. */
function pathsOf(rows: readonly Int32Array[]): Map<number, string> {
  const paths = new Map<number, string>();
  for (const [y, row] of rows.entries()) {
    for (let x = 0; x < row.length; ) {
      const drawn = row[x] as number;
      let end = x + 1;
      while (end < row.length && row[end] === drawn) end += 1;
      if (drawn !== unregistered)
        paths.set(drawn, `${paths.get(drawn) ?? ""}M${x} ${y}h${end - x}v1h${x - end}z`);
      x = end;
    }
  }
  return paths;
}

export interface Cell {
  readonly x: number;
  readonly y: number;
}

/** Returns the position of a cell by its number, on a map with 2^order cells per side. */
export function cellOfIndex(index: number, order: number): Cell {
  let [x, y, rest] = [0, 0, index];
  for (let side = 1; side < 2 ** order; side *= 2) {
    const quadrant = rest % 4;
    // The first quadrant is mirrored at one diagonal, the last at the other.
    if (quadrant === 0) [x, y] = [y, x];
    else if (quadrant === 1) y += side;
    else if (quadrant === 2) [x, y] = [x + side, y + side];
    else [x, y] = [2 * side - 1 - y, side - 1 - x];
    rest = Math.floor(rest / 4);
  }
  return { x, y };
}
