/**
 * Counts, while the files are written, what the tree of a correct import must look like: how many ranges,
 * how deep, how many cross, who holds them, and what differs from the generation before.
 */
import type { StateSummary } from "#rir-import/tree/registry-state";
import type { RegionalRegistry } from "./address-blocks.ts";
import type { HolderChoice } from "./holder-choice.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import type { Slot } from "./slot.ts";
import { isSeenChanged, type SlotView } from "./slot-view.ts";

/** What the importer's summary of a correct import has, but for the samples. */
export type ExpectedState = Omit<StateSummary, "crossingSamples">;

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
    this.#range(slot);
    if (secondSpan !== null) this.#range(slot);
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

  changes(): ExpectedChanges {
    return { added: this.#added, removed: this.#removed, changed: this.#changed };
  }

  #range(slot: Slot): void {
    this.#count(slot.block.family, slot.above + 1);
  }

  #count(family: 4 | 6, depth: number): void {
    this.#ranges[family]++;
    while (this.#depths.length < depth) this.#depths.push(0);
    this.#depths[depth - 1] = (this.#depths[depth - 1] as number) + 1;
  }
}

// Counts the holders that the importer must tell apart, one bit each: a hundred million objects need a few
// megabytes. Organisations and customers count by handle within their registry, companies by name wherever
// they are, names that strangers share by registry and country (subnets/holder-name).

class HolderTally {
  /** Different holders so far. */
  count = 0;
  readonly #companies = new Bits();
  readonly #organisations = new Map<RegionalRegistry, Bits>();
  readonly #customers = new Bits();
  readonly #opaqueIds = new Map<RegionalRegistry, Bits>();
  readonly #sharedNames = new Set<string>();

  /** False when the choice names nobody. */
  add(registry: RegionalRegistry, { type, number }: HolderChoice, country: string): boolean {
    switch (type) {
      case "company":
        this.#count(this.#companies, number);
        return true;
      case "organisation":
        this.#count(bitsOf(this.#organisations, registry), number);
        return true;
      case "customer":
        this.#count(this.#customers, number);
        return true;
      case "shared-name":
        this.#addSharedName(`${registry} ${country} ${number}`);
        return true;
      default:
        return false;
    }
  }

  /** The holder of ranges that only the statistics know. */
  addOpaqueId(registry: RegionalRegistry, number: number): void {
    this.#count(bitsOf(this.#opaqueIds, registry), number);
  }

  #addSharedName(key: string): void {
    if (!this.#sharedNames.has(key)) this.count++;
    this.#sharedNames.add(key);
  }

  #count(bits: Bits, number: number): void {
    if (bits.add(number)) this.count++;
  }
}

function bitsOf(map: Map<RegionalRegistry, Bits>, registry: RegionalRegistry): Bits {
  const known = map.get(registry);
  if (known !== undefined) return known;
  const bits = new Bits();
  map.set(registry, bits);
  return bits;
}

/** A growing set of small whole numbers. */
class Bits {
  #bytes = new Uint8Array(1024);

  /** False when the number was in already. */
  add(number: number): boolean {
    const at = number >>> 3;
    if (at >= this.#bytes.length) this.#grow(at);
    const byte = this.#bytes[at] as number;
    const mask = 1 << (number & 7);
    this.#bytes[at] = byte | mask;
    return (byte & mask) === 0;
  }

  #grow(at: number): void {
    const larger = new Uint8Array(Math.max(at + 1, 2 * this.#bytes.length));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}
