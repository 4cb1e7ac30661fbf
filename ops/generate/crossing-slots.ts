/**
 * Ranges that overlap without holding each other, as RIPE's and APNIC's databases have some: a cell with two or
 * three objects becomes two that cross and one that both hold.
 */

import { type SlotSource, slotAt } from "./make-slots.ts";
import { below, draw, fraction } from "./path-random.ts";
import type { Slot } from "./slot.ts";
import { lifeOf } from "./slot-life.ts";
import { spanOf } from "./slot-shape.ts";
import type { WorkCell } from "./work-cell.ts";

/** Two or three objects of an RPSL registry: now and then two of them cross, more often in its first block. */
export function isCrossing(cell: WorkCell, { plan, blockPlan }: SlotSource): boolean {
  if (cell.level.isAllocation || cell.objects < 2 || cell.objects > 3 || cell.bits < 5) return false;
  if (blockPlan.block.family === 6 || plan.registry === "arin" || plan.registry === "lacnic") return false;
  const isFirst = blockPlan === plan.ipv4[0];
  return fraction(cell.path, 36) < Math.max(crossingChance, isFirst ? 20 / blockPlan.objects : 0);
}

const crossingChance = 0.0007;

/** Five eighths from the start, five eighths to the end, and with a third object a range that both hold. */
export function crossingSlots(cell: WorkCell, options: SlotSource): readonly Slot[] {
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
