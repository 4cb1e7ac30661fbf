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
import { crossingSlots, isCrossing } from "./crossing-slots.ts";
import { blockSlot, innerSlot, type SlotSource, shapeOf, slotAt } from "./make-slots.ts";
import type { Slot } from "./slot.ts";
import { spanOf } from "./slot-shape.ts";
import { cellInside, isOneRange, pushHalves, topLevel, type WorkCell } from "./work-cell.ts";

export interface WalkOptions extends SlotSource {
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
