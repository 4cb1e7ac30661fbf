/**
 * Cells on their way to become ranges: aligned blocks with a number of objects that are still to be placed in
 * them, halved until what is left belongs to one range.
 */
import { below, draw, fraction } from "./path-random.ts";
import type { Slot } from "./slot.ts";
import { type Cell, roomOf } from "./slot-shape.ts";

/** A cell to be filled, and what its objects have in common with their neighbours. */
export interface WorkCell extends Cell {
  readonly objects: number;
  readonly path: number;
  /** On the way to the one place in the registry that is sure to be deep. */
  readonly isDeep: boolean;
  readonly level: Level;
}

export interface Level {
  /** With so many objects or fewer, a cell becomes one range with the others inside. */
  readonly target: number;
  readonly isAllocation: boolean;
  /** Ranges still to come that hold only one other: what makes the deepest places. */
  readonly chain: number;
  readonly organisation: number;
  readonly country: number;
  /** Live ranges around. */
  readonly above: number;
}

export const topLevel: Level = {
  target: 0,
  isAllocation: true,
  chain: 0,
  organisation: 0,
  country: 0,
  above: 1,
};

/** Divides a cell's objects between its halves; neither gets more than fits. */
export function pushHalves(stack: WorkCell[], cell: WorkCell): void {
  const { first, objects, path, isDeep, level } = cell;
  if (objects === 0) return;
  const bits = cell.bits - 1;
  const room = roomOf(bits);
  const share = level.chain > 0 ? 1 : 0.2 + 0.6 * fraction(path, 21);
  const low = Math.max(Math.min(Math.round(objects * share), room), objects - room);
  const high = objects - low;
  const isLowLast = (draw(path, 22) & 1) === 0;
  if (isLowLast && low > 0) {
    stack.push({ first, bits, objects: low, path: draw(path, 23), isDeep: isDeep && low >= high, level });
  }
  if (high > 0) {
    const at = first + 2 ** bits;
    stack.push({ first: at, bits, objects: high, path: draw(path, 24), isDeep: isDeep && high > low, level });
  }
  if (!isLowLast && low > 0) {
    stack.push({ first, bits, objects: low, path: draw(path, 23), isDeep: isDeep && low >= high, level });
  }
}

export function isOneRange({ objects, level, isDeep, path }: WorkCell): boolean {
  if (objects === 1) return true;
  if (!level.isAllocation) return objects <= level.target;
  return objects <= (isDeep ? 60 : Math.ceil(Math.exp(fraction(path, 25) * 6.4)));
}

/** What lies within the range that a cell became. */
export function cellInside(cell: WorkCell, slot: Slot, { first, bits }: Cell): WorkCell {
  const { path } = cell;
  const chain = chainInside(cell);
  const objects = cell.objects - 1;
  const fanOut = 2 ** (1 + below(path, 26, 4));
  const target = chain > 0 ? objects : objects <= 5 ? 1 : Math.ceil(objects / fanOut);
  const { organisation, country, life } = slot;
  const above = slot.above + (life.isLive ? 1 : 0);
  const level = { target, isAllocation: false, chain, organisation, country, above };
  return { first, bits, objects, path: draw(path, 27), isDeep: false, level };
}

const deepChain = 10;

function chainInside({ level, isDeep, objects, path }: WorkCell): number {
  if (level.chain > 0) return level.chain - 1;
  if (isDeep && level.isAllocation) return deepChain;
  return objects >= 6 && fraction(path, 28) < 0.004 ? 3 + below(path, 29, 6) : 0;
}
