/** From cells to slots: the block, its allocations and assignments, and what appears within them later. */
import { below, draw, fraction } from "./path-random.ts";
import type { BlockPlan, RegistryPlan } from "./registry-plan.ts";
import type { Slot, Span } from "./slot.ts";
import { innerLife, lifeOf } from "./slot-life.ts";
import { type Cell, type OddRanges, type Shape, shapeIn, spanOf } from "./slot-shape.ts";
import type { WorkCell } from "./work-cell.ts";

/** Which block of which registry slots are made in. */
export interface SlotSource {
  readonly plan: RegistryPlan;
  readonly blockPlan: BlockPlan;
}

/** The range that a cell becomes, and where in it the others go. */
export function shapeOf(cell: WorkCell, { plan, blockPlan }: SlotSource): Shape {
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

export function blockSlot({ plan, blockPlan }: SlotSource, span: Span): Slot {
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

export function slotAt(cell: WorkCell, shape: Shape, { plan, blockPlan }: SlotSource): Slot {
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
export function innerSlot(slot: Slot, plan: RegistryPlan): Slot {
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
