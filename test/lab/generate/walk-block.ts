/**
 * The hierarchy below one block of a registry, object by object, parents before what they hold, with a stack
 * of cells in place of recursion and of memory: what is on the stack is all there is.
 *
 *   cell 2.0.0.0/8, 94,000 objects
 *     halved, the objects divided unevenly, until few enough are left for an allocation
 *       2.17.64.0/19  allocation, 60 objects: itself, and 59 in its halves
 *         halved again, until about a fan-out's part is left
 *           2.17.66.0/24  assignment …
 *
 * Which half comes first is drawn as well: as in the real files, ranges do not come in their order.
 */
import { below, draw, fraction } from "./path-random.ts";
import type { BlockPlan, RegistryPlan } from "./registry-plan.ts";
import type { Slot, Span } from "./slot.ts";
import { innerLife, lifeOf } from "./slot-life.ts";

interface WalkOptions extends SlotSource {
  /** Only blocks and allocations: for the statistics, which list nothing below. */
  readonly onlyAllocations?: boolean;
}

export function* walkBlock(options: WalkOptions): Generator<Slot> {
  const { plan, blockPlan, onlyAllocations = false } = options;
  const { block, objects, path } = blockPlan;
  const whole = { first: block.family === 4 ? block.top : 0, bits: block.bits };
  const isDeep = blockPlan === plan.ipv4[0] || blockPlan === plan.ipv6[0];
  const stack: WorkCell[] = [];
  yield blockSlot(options, spanOf(whole));
  pushHalves(stack, { ...whole, objects: objects - 1, path, isDeep, level: topLevel });
  for (let cell = stack.pop(); cell !== undefined; cell = stack.pop()) {
    if (isCrossing(cell, options)) {
      if (!onlyAllocations) yield* crossingSlots(cell, options);
      continue;
    }
    if (!isOneRange(cell)) {
      pushHalves(stack, cell);
      continue;
    }
    const shape = shapeOf(cell, options);
    const slot = slotAt(cell, shape, options);
    yield slot;
    if (onlyAllocations) continue;
    if (slot.life.innerSince > 0) yield innerSlot(slot, plan);
    if (cell.objects > 1) pushHalves(stack, cellInside(cell, slot, shape.inside));
  }
}

// Ranges that overlap without holding each other, as RIPE's and APNIC's databases have some: a cell with two or
// three objects becomes two that cross and one that both hold.

/** Two or three objects of an RPSL registry: now and then two of them cross, more often in its first block. */
function isCrossing(cell: WorkCell, { plan, blockPlan }: SlotSource): boolean {
  if (cell.level.isAllocation || cell.objects < 2 || cell.objects > 3 || cell.bits < 5) return false;
  if (blockPlan.block.family === 6 || plan.registry === "arin" || plan.registry === "lacnic") return false;
  const isFirst = blockPlan === plan.ipv4[0];
  return fraction(cell.path, 36) < Math.max(crossingChance, isFirst ? 20 / blockPlan.objects : 0);
}

const crossingChance = 0.0007;

/** Five eighths from the start, five eighths to the end, and with a third object a range that both hold. */
function crossingSlots(cell: WorkCell, options: SlotSource): readonly Slot[] {
  const bits = Math.min(cell.bits, 5 + below(cell.path, 37, 6));
  const eighth = 2 ** (bits - 3);
  const spans = [
    { first: cell.first, last: cell.first + 5 * eighth - 1, bits: -1 },
    { first: cell.first + 3 * eighth, last: cell.first + 8 * eighth - 1, bits: -1 },
    spanOf({ first: cell.first + 4 * eighth, bits: bits - 3 }),
  ].slice(0, cell.objects);
  return spans.map((span, at) => {
    const inside = { first: span.first, bits: 0 };
    const level = { ...cell.level, above: cell.level.above + (at === 2 ? 1 : 0) };
    const part = { ...cell, path: draw(cell.path, 38 + at), level };
    const slot = slotAt(part, { span, secondSpan: null, inside, isHost: false }, options);
    const life = lifeOf(part.path, options.plan.settings, { mayGo: false, mayGrow: false });
    return { ...slot, kind: "crossing", life, crossesNext: at === 0 };
  });
}

// From cells to slots: the block, its allocations and assignments, and what appears within them later.

/** Which block of which registry slots are made in. */
interface SlotSource {
  readonly plan: RegistryPlan;
  readonly blockPlan: BlockPlan;
}

/** The range that a cell becomes, and where in it the others go. */
function shapeOf(cell: WorkCell, { plan, blockPlan }: SlotSource): Shape {
  const { family } = blockPlan.block;
  const { objects, path, level } = cell;
  const { isAllocation } = level;
  return shapeIn(cell, { family, isAllocation, objects, odd: oddRanges(plan, family), path });
}

const oddShareOfRpsl = 0.33;
const twoBlockShareOfArin = 0.03;

function oddRanges({ registry }: RegistryPlan, family: 4 | 6): OddRanges {
  if (family === 6 || registry === "lacnic") return { share: 0, as: "range" };
  if (registry === "arin") return { share: twoBlockShareOfArin, as: "two-blocks" };
  return { share: oddShareOfRpsl, as: "range" };
}

function blockSlot({ plan, blockPlan }: SlotSource, span: Span): Slot {
  const { block, path } = blockPlan;
  return {
    kind: "block",
    block,
    span,
    secondSpan: null,
    spareSpan: null,
    isHost: false,
    crossesNext: false,
    path,
    organisation: 0,
    country: 0,
    above: 0,
    life: lifeOf(path, plan.settings, { mayGo: false, mayGrow: false }),
  };
}

function slotAt(cell: WorkCell, shape: Shape, { plan, blockPlan }: SlotSource): Slot {
  const { path, level } = cell;
  const { isAllocation, above } = level;
  const { span, secondSpan, inside, isHost } = shape;
  const isAlone = cell.objects === 1;
  const mayGrow = isAlone && span.bits >= 3 && secondSpan === null;
  return {
    kind: isAllocation ? "allocation" : "assignment",
    block: blockPlan.block,
    span,
    secondSpan,
    spareSpan: isAllocation && span.bits === inside.bits ? spareBeside(cell, inside) : null,
    isHost,
    crossesNext: false,
    path,
    organisation: isAllocation ? below(path, 32, plan.organisations) : level.organisation,
    country: isAllocation || fraction(path, 33) < 0.05 ? draw(path, 34) & 0xffff : level.country,
    above,
    life: lifeOf(path, plan.settings, { mayGo: !isAllocation, mayGrow }),
  };
}

const spareShare = 0.05;

/** Beside one allocation in twenty: the other half of the block around it, where that is the cell's as well. */
function spareBeside(cell: WorkCell, { first, bits }: Cell): Span | null {
  if (bits >= cell.bits || fraction(cell.path, 31) >= spareShare) return null;
  const isLow = ((first - cell.first) / 2 ** bits) % 2 === 0;
  return spanOf({ first: isLow ? first + 2 ** bits : first - 2 ** bits, bits });
}

/** The lower half of a range that had nothing within it. */
function innerSlot(slot: Slot, plan: RegistryPlan): Slot {
  const { span, life, above } = slot;
  const path = draw(slot.path, 35);
  return {
    ...slot,
    kind: "assignment",
    span: spanOf({ first: span.first, bits: span.bits - 1 }),
    spareSpan: null,
    path,
    above: above + (life.isLive ? 1 : 0),
    life: innerLife(life.innerSince, plan.settings.generation),
  };
}

// Cells on their way to become ranges: aligned blocks with a number of objects that are still to be placed in
// them, halved until what is left belongs to one range.

/** A cell to be filled, and what its objects have in common with their neighbours. */
interface WorkCell extends Cell {
  readonly objects: number;
  readonly path: number;
  /** On the way to the one place in the registry that is sure to be deep. */
  readonly isDeep: boolean;
  readonly level: Level;
}

interface Level {
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

const topLevel: Level = {
  target: 0,
  isAllocation: true,
  chain: 0,
  organisation: 0,
  country: 0,
  above: 1,
};

/** Divides a cell's objects between its halves; neither gets more than fits. */
function pushHalves(stack: WorkCell[], cell: WorkCell): void {
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

function isOneRange({ objects, level, isDeep, path }: WorkCell): boolean {
  if (objects === 1) return true;
  if (!level.isAllocation) return objects <= level.target;
  return objects <= (isDeep ? 60 : Math.ceil(Math.exp(fraction(path, 25) * 6.4)));
}

/** What lies within the range that a cell became. */
function cellInside(cell: WorkCell, slot: Slot, { first, bits }: Cell): WorkCell {
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

// How large a range is made within the cell that it got, and whether it is a CIDR block. A cell is an aligned
// block that is the range's alone, larger than it needs to be, so real sizes can be chosen: /29s and /24s for
// customers, /22 to /16 for providers, in IPv6 /48s and /32s.

/** An aligned block of 2^bits units. */
interface Cell {
  readonly first: number;
  readonly bits: number;
}

interface Shape {
  readonly span: Span;
  readonly secondSpan: Span | null;
  /** Where more specific ranges go: the span itself, or its largest aligned part. */
  readonly inside: Cell;
  readonly isHost: boolean;
}

/** How often a range is no CIDR block, and what it is then: one range, or a net of two blocks. */
interface OddRanges {
  readonly share: number;
  readonly as: "range" | "two-blocks";
}

interface ShapeWish {
  readonly family: 4 | 6;
  readonly isAllocation: boolean;
  /** Objects that have to fit, the range's own among them. */
  readonly objects: number;
  readonly odd: OddRanges;
  readonly path: number;
}

/** Objects that fit into 2^bits units: one in four, which leaves each smallest cell four addresses. */
function roomOf(bits: number): number {
  return bits >= 2 ? 2 ** (bits - 2) : 1;
}

function shapeIn(cell: Cell, wish: ShapeWish): Shape {
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

function spanOf({ first, bits }: Cell): Span {
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
