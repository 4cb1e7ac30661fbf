/**
 * What an object says in a generation: its name, country and holder, as the importer will see them. Not every
 * format shows everything: LACNIC's objects have no name, ARIN's nets no country; what would have changed
 * there changes something that shows.
 */

import { firstWord, type HolderChoice, holderOfSlot, isSame } from "./holder-choice.ts";
import { draw } from "./path-random.ts";
import { countryOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import type { Slot } from "./slot.ts";

export interface SlotView {
  /** As the file has it; empty at LACNIC. */
  readonly name: string;
  readonly country: string;
  readonly holder: HolderChoice;
}

export function viewOf(plan: RegistryPlan, slot: Slot): SlotView {
  return viewAfter(plan, slot, editsOf(plan, slot));
}

/** Whether the importer sees another name, country or holder than a generation before. */
export function isSeenChanged(plan: RegistryPlan, slot: Slot): boolean {
  const { life } = slot;
  if (life.edit === null || !life.isLive || !life.wasLive) return false;
  const now = viewOf(plan, slot);
  const before = viewAfter(plan, slot, editsBefore(plan, slot));
  if (now.name !== before.name || !isSeenSame(now.holder, before.holder)) return true;
  return plan.registry !== "arin" && now.country !== before.country;
}

interface Edits {
  readonly names: number;
  readonly holders: number;
  readonly countries: number;
}

function editsOf(plan: RegistryPlan, { life }: Slot): Edits {
  const { names, holders, countries } = life;
  if (plan.registry === "lacnic") return { names: 0, holders: holders + names, countries };
  if (plan.registry === "arin") return { names: names + countries, holders, countries: 0 };
  return life;
}

function editsBefore(plan: RegistryPlan, slot: Slot): Edits {
  const { life } = slot;
  const undo = (edit: typeof life.edit, count: number) => (life.edit === edit ? count - 1 : count);
  const before = {
    ...life,
    names: undo("name", life.names),
    holders: undo("holder", life.holders),
    countries: undo("country", life.countries),
  };
  return editsOf(plan, { ...slot, life: before });
}

function viewAfter(plan: RegistryPlan, slot: Slot, { names, holders, countries }: Edits): SlotView {
  return {
    name: plan.registry === "lacnic" ? "" : nameOf(slot, countryOf(plan.registry, slot.country), names),
    country: countryOf(plan.registry, slot.country + countries),
    holder: holderOfSlot(plan, slot, holders),
  };
}

const words = Array.from({ length: 5000 }, (_, number) => firstWord(number * 97).toUpperCase());

function nameOf({ kind, path, block }: Slot, country: string, edits: number): string {
  const ending = edits === 0 ? "" : `-R${edits}`;
  if (kind === "block")
    return `${block.registry.toUpperCase()}-BLOCK-${(block.top >>> 16).toString(16)}${ending}`;
  return `${country}-${words[draw(path, 41) % words.length]}-${draw(path, 42) % 100_000}${ending}`;
}

/** Nobody in particular and nobody at all look alike. */
function isSeenSame(a: HolderChoice, b: HolderChoice): boolean {
  const isNobody = ({ type }: HolderChoice) => type === "anonymous" || type === "none";
  return isSame(a, b) || (isNobody(a) && isNobody(b));
}
