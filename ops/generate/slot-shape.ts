/**
 * How large a range is made within the cell that it got, and whether it is a CIDR block. A cell is an aligned
 * block that is the range's alone, larger than it needs to be, so real sizes can be chosen: /29s and /24s for
 * customers, /22 to /16 for providers, in IPv6 /48s and /32s.
 */
import { below, draw, fraction } from "./path-random.ts";
import type { Span } from "./slot.ts";

/** An aligned block of 2^bits units. */
export interface Cell {
  readonly first: number;
  readonly bits: number;
}

export interface Shape {
  readonly span: Span;
  readonly secondSpan: Span | null;
  /** Where more specific ranges go: the span itself, or its largest aligned part. */
  readonly inside: Cell;
  readonly isHost: boolean;
}

/** How often a range is no CIDR block, and what it is then: one range, or a net of two blocks. */
export interface OddRanges {
  readonly share: number;
  readonly as: "range" | "two-blocks";
}

export interface ShapeWish {
  readonly family: 4 | 6;
  readonly isAllocation: boolean;
  /** Objects that have to fit, the range's own among them. */
  readonly objects: number;
  readonly odd: OddRanges;
  readonly path: number;
}

/** Objects that fit into 2^bits units: one in four, which leaves each smallest cell four addresses. */
export function roomOf(bits: number): number {
  return bits >= 2 ? 2 ** (bits - 2) : 1;
}

export function shapeIn(cell: Cell, wish: ShapeWish): Shape {
  const { path, objects } = wish;
  const isLeaf = objects === 1 && !wish.isAllocation;
  const bits = Math.min(cell.bits, wantedBits(wish));
  const block = { first: placedIn(cell, bits, path), bits };
  if (fraction(path, 11) < wish.odd.share && bits >= 3 && objects - 1 <= roomOf(bits - 1)) {
    if (wish.odd.as === "two-blocks") return twoBlocks(block);
    return objects === 1 ? oddLeaf(block, path) : oddParent(block, path);
  }
  const isHost = wish.family === 6 && isLeaf && fraction(path, 12) < 0.01;
  const span = isHost ? spanOf({ first: block.first, bits: 0 }) : spanOf(block);
  return { span, secondSpan: null, inside: block, isHost };
}

export function spanOf({ first, bits }: Cell): Span {
  return { first, last: first + 2 ** bits - 1, bits };
}

/** log2 of the size that such a range would have in the field, large enough for what has to fit. */
function wantedBits({ family, isAllocation, objects, path }: ShapeWish): number {
  const fewest = objects === 1 ? 0 : Math.ceil(Math.log2(objects)) + 2;
  if (objects === 1 && !isAllocation) return family === 4 ? leafBits(path) : leafBits6(path);
  const wider = fewest + 1 + below(path, 13, 3);
  if (family === 4) return Math.max(wider, isAllocation ? 8 + below(path, 14, 6) : 4);
  return Math.max(wider, isAllocation ? (fraction(path, 14) < 0.7 ? 32 : 35) : 16 + 4 * below(path, 14, 3));
}

/** /29 most often, then /24; one in fourteen a single address. */
const leafSizes = [
  3, 3, 3, 3, 8, 8, 8, 4, 4, 2, 2, 5, 5, 6, 7, 9, 0, 3, 3, 8, 2, 4, 5, 10, 6, 0, 3, 8,
] as const;

function leafBits(path: number): number {
  return leafSizes[below(path, 15, leafSizes.length)] as number;
}

/** /48, /56 or /64. */
function leafBits6(path: number): number {
  const chance = fraction(path, 15);
  return chance < 0.55 ? 16 : chance < 0.75 ? 8 : 0;
}

/** At the cell's start as often as not, else anywhere aligned. */
function placedIn(cell: Cell, bits: number, path: number): number {
  const places = 2 ** (cell.bits - bits);
  if (places === 1 || (draw(path, 16) & 1) === 0) return cell.first;
  return cell.first + Math.floor(fraction(path, 17) * places) * 2 ** bits;
}

/** Three quarters of the block or more, not all of it, from its first address or the next: no CIDR block either way. */
function oddLeaf(block: Cell, path: number): Shape {
  const size = 2 ** block.bits;
  const last = block.first + size - 2 - below(path, 18, size / 4);
  const first = block.first + (draw(path, 19) & 1);
  return { span: { first, last, bits: -1 }, secondSpan: null, inside: block, isHost: false };
}

/** All of the block's first half and a part of its second. */
function oddParent(block: Cell, path: number): Shape {
  const half = 2 ** (block.bits - 1);
  const last = block.first + half + below(path, 18, half - 1);
  const inside = { first: block.first, bits: block.bits - 1 };
  return { span: { first: block.first, last, bits: -1 }, secondSpan: null, inside, isHost: false };
}

/** The block's first half and the quarter behind it: 192.0.2.0/25 and 192.0.2.128/26. */
function twoBlocks(block: Cell): Shape {
  const inside = { first: block.first, bits: block.bits - 1 };
  const second = { first: block.first + 2 ** (block.bits - 1), bits: block.bits - 2 };
  return { span: spanOf(inside), secondSpan: spanOf(second), inside, isHost: false };
}
