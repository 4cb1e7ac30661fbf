/**
 * Counts, while the files are written, what the tree of a correct import must look like: how many ranges,
 * how deep, how many cross, who holds them, and what differs from the generation before.
 */
import type { StateSummary } from "#rir-import/tree/registry-state";
import type { RegionalRegistry } from "./address-blocks.ts";
import { HolderTally } from "./holder-tally.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import type { Slot, Span } from "./slot.ts";
import { isSeenChanged, type SlotView } from "./slot-view.ts";

/** What the importer's summary of a correct import has, but for the samples. */
export type ExpectedState = Omit<StateSummary, "crossingSamples">;

/** What was put in, for those who want to know how real it is. */
export interface MakeUp {
  /** Ranges at each depth; the first is depth 1. */
  readonly depths: readonly number[];
  readonly ipv4NotCidr: number;
  readonly unary: number;
}

/** Since the generation before, in ranges; reparented ones (a range between came or went) are not counted. */
export interface ExpectedChanges {
  readonly added: number;
  readonly removed: number;
  /** Another name, country or holder. */
  readonly changed: number;
}

export class TreeTally {
  readonly #holders = new HolderTally();
  readonly #ranges = { 4: 0, 6: 0 };
  readonly #depths: number[] = [];
  /** Companies that hold a block of IANA's by name. */
  #blockHolders = 0;
  #withoutHolder = 0;
  #duplicates = 0;
  #crossings = 0;
  #ipv4NotCidr = 0;
  #unary = 0;
  #added = 0;
  #removed = 0;
  #changed = 0;

  /** One place of the hierarchy, live or not. */
  slot(plan: RegistryPlan, slot: Slot, view: SlotView): void {
    const { life, secondSpan } = slot;
    const ranges = secondSpan === null ? 1 : 2;
    if (life.isLive && !life.wasLive) this.#added += ranges;
    if (!life.isLive && life.wasLive) this.#removed += ranges;
    if (!life.isLive) return;
    if (isSeenChanged(plan, slot)) this.#changed += ranges;
    const isNamed = this.#holders.add(plan.registry, view.holder, view.country);
    if (slot.kind === "block") {
      // IANA's registry has it already, without a holder.
      this.#duplicates++;
      if (isNamed) this.#withoutHolder--;
      return;
    }
    if (!isNamed) this.#withoutHolder += ranges;
    if (slot.crossesNext) this.#crossings++;
    this.#range(slot, slot.span);
    if (secondSpan !== null) this.#range(slot, secondSpan);
  }

  /** A range of IANA's registries. */
  ianaBlock(family: 4 | 6, isHeld: boolean): void {
    this.#count(family, 1);
    if (isHeld) this.#blockHolders++;
    else this.#withoutHolder++;
  }

  /** A range that only the statistics know, directly below IANA's block. */
  spareRange(registry: RegionalRegistry, family: 4 | 6, holder: number): void {
    this.#count(family, 2);
    this.#holders.addOpaqueId(registry, holder);
  }

  /** A range that ARIN's database holds and another registry's repeats. */
  sharedRange(registry: RegionalRegistry, organisation: number): void {
    this.#count(4, 2);
    this.#holders.add(registry, { type: "organisation", number: organisation }, "");
  }

  /** A further record of a range that is there. */
  duplicate(): void {
    this.#duplicates++;
  }

  state(): ExpectedState {
    return {
      subnets: this.#ranges[4] + this.#ranges[6],
      ipv4Subnets: this.#ranges[4],
      ipv6Subnets: this.#ranges[6],
      holders: this.#holders.count + this.#blockHolders,
      withoutHolder: this.#withoutHolder,
      duplicates: this.#duplicates,
      deepest: this.#depths.length,
      crossings: this.#crossings,
    };
  }

  makeUp(): MakeUp {
    const depths = Array.from(this.#depths, (count) => count ?? 0);
    return { depths, ipv4NotCidr: this.#ipv4NotCidr, unary: this.#unary };
  }

  changes(): ExpectedChanges {
    return { added: this.#added, removed: this.#removed, changed: this.#changed };
  }

  #range(slot: Slot, span: Span): void {
    const { family } = slot.block;
    this.#count(family, slot.above + 1);
    if (span.bits < 0) this.#ipv4NotCidr++;
    if (slot.isHost || (family === 4 && span.bits === 0)) this.#unary++;
  }

  #count(family: 4 | 6, depth: number): void {
    this.#ranges[family]++;
    while (this.#depths.length < depth) this.#depths.push(0);
    this.#depths[depth - 1] = (this.#depths[depth - 1] as number) + 1;
  }
}
