/**
 * Counts the holders that the importer must tell apart, one bit each: a hundred million objects need a few
 * megabytes. Organisations and customers count by handle within their registry, companies by name wherever
 * they are, names that strangers share by registry and country (subnets/holder-name).
 */
import type { RegionalRegistry } from "./address-blocks.ts";
import type { HolderChoice } from "./holder-choice.ts";

export class HolderTally {
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
