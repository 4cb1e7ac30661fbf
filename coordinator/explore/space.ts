/**
 * What is drawn: all of IPv4, and of IPv6 the part that is given out, 2000::/3 (IANA). An address is drawn by its
 * position, a whole number from 0: for IPv4 the address itself, for IPv6 the 52 bits that follow the first three, so
 * that numbers are exact and a position is a /55; what is registered more finely is listed and not drawn.
 *
 * A tile is a square of 256 by 256 cells: at zoom 0 one tile covers the space, at each further zoom a quarter of the
 * one before. Its cells are numbered along the Hilbert curve, which is the order of addresses.
 *
 *   IPv4   zoom 0: 0.0.0.0/0, cells of /16     zoom 4: a /8, cells of /24      zoom 8: a /16, cells of one address
 *   IPv6   zoom 0: 2000::/3, cells of /19      zoom 8: a /19, cells of /35     zoom 18: a /39, cells of /55
 */
import { formatAddress, type IpAddress } from "#core/ip/address";
import { firstAddress, type IpRange } from "#core/ip/range";

export interface MapSpace {
  readonly family: 4 | 6;
  readonly positionBits: 32 | 52;
  /** Bits of the address before the position's. */
  readonly leadingBits: 0 | 3;
  readonly deepestZoom: 8 | 18;
}

export const ipv4Space: MapSpace = { family: 4, positionBits: 32, leadingBits: 0, deepestZoom: 8 };
export const ipv6Space: MapSpace = { family: 6, positionBits: 52, leadingBits: 3, deepestZoom: 18 };
export const spaceOf = (family: 4 | 6): MapSpace => (family === 4 ? ipv4Space : ipv6Space);

/** Cells to a side are 2^8. */
export const tileOrder = 8;

export const cellsPerTile = 4 ** tileOrder;
const ipv6Shift = 73n;
const ipv6Start = 1n << 125n;

export interface Tile {
  readonly space: MapSpace;
  readonly zoom: number;
  /** Among the tiles of its zoom, in the order of addresses. */
  readonly index: number;
}

export const rootTile = (space: MapSpace): Tile => ({ space, zoom: 0, index: 0 });
export const tilePositions = ({ space, zoom }: Tile): number => 2 ** (space.positionBits - 2 * zoom);
export const firstPositionOf = (tile: Tile): number => tile.index * tilePositions(tile);
export const cellPositions = (tile: Tile): number => tilePositions(tile) / cellsPerTile;

export const childTile = (tile: Tile, quadrant: number): Tile => ({
  space: tile.space,
  zoom: tile.zoom + 1,
  index: 4 * tile.index + quadrant,
});

/** Null when there is none of this number. */
export function tileAt(space: MapSpace, zoom: number, index: number): Tile | null {
  const isThere =
    Number.isInteger(zoom) && zoom >= 0 && zoom <= space.deepestZoom && Number.isInteger(index) && index >= 0;
  return isThere && index < 4 ** zoom ? { space, zoom, index } : null;
}

/** The block of addresses that a tile, or a part of one, covers. */
export function blockText(space: MapSpace, firstPosition: number, positions: number): string {
  const prefixLength = space.leadingBits + space.positionBits - Math.round(Math.log2(positions));
  return `${formatAddress(addressAt(space, firstPosition))}/${prefixLength}`;
}

export const tileText = (tile: Tile): string =>
  blockText(tile.space, firstPositionOf(tile), tilePositions(tile));

export function addressAt({ family }: MapSpace, position: number): IpAddress {
  if (family === 4) return { family, value: position };
  return { family, value: ipv6Start + (BigInt(position) << ipv6Shift) };
}

/** Outside the space: below 0, or beyond the last one. */
export function positionOf({ family }: MapSpace, address: IpAddress): number {
  if (family === 4) return address.family === 4 ? address.value : -1;
  return address.family === 6 ? Number((address.value - ipv6Start) >> ipv6Shift) : -1;
}

/** The smallest tile that holds the range whole; null when none does. */
export function tileHolding(range: IpRange): Tile | null {
  const space = spaceOf(range.family);
  const first = positionOf(space, firstAddress(range));
  const last = positionOf(space, { family: range.family, value: range.last } as IpAddress);
  const end = 2 ** space.positionBits;
  if (last < 0 || first >= end) return null;
  if (first < 0 || last >= end) return rootTile(space);
  let tile: Tile = rootTile(space);
  for (let zoom = 1; zoom <= space.deepestZoom; zoom += 1) {
    const positions = 2 ** (space.positionBits - 2 * zoom);
    const index = Math.floor(first / positions);
    if (index !== Math.floor(last / positions)) break;
    tile = { space, zoom, index };
  }
  return tile;
}

// The Hilbert curve: neighbours on the line of addresses stay neighbours on the map, and a CIDR block of even
// length is a square (D. Hilbert 1891; the walk from quadrant to quadrant follows Warren, Hacker's Delight, 16-2).
// An order of k covers 2^k by 2^k cells. Bits are taken by division: IPv6 needs more than 32 of them.
//
// order 1:  0 3     x to the right, y downwards
// 1 2

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
