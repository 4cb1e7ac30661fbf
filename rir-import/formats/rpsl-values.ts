/**
 * The values of one RPSL object, by slot (rpsl-attributes.ts): where they lie in the block of lines at hand, until somebody asks for a text. A
 * value that is continued on a second line becomes text at once; what lies in a block that ends within the object is
 * copied.
 */
import type { Registry } from "#coordinator/subnets/subnet";
import { countryCode, readCountry } from "./country.ts";
import type { RangeReader } from "./range-reader.ts";
import { registryNamed } from "./record.ts";
import { RememberedBytes } from "./remembered-bytes.ts";
import { slotCount, slots } from "./rpsl-attributes.ts";
import { type ValueDecoder, withoutComment } from "./text-decoding.ts";

/** Values longer than this (many continuation lines) are cut: no name or range needs more. */
const maxValueLength = 1024;
const nothing = Buffer.alloc(0);

export class RpslValues {
  readonly #decoder: ValueDecoder;
  #block: Buffer = nothing;
  /** Values out of blocks that were left. */
  #copied: Buffer = nothing;
  readonly #starts = new Int32Array(slotCount);
  readonly #ends = new Int32Array(slotCount);
  readonly #texts: string[] = new Array<string>(slotCount).fill("");
  /** A bit for each slot that has a value; for each whose value is text by now; for each that was copied. */
  #present = 0;
  #asText = 0;
  #isCopied = 0;
  readonly #registries = new RememberedBytes(registryIn);

  constructor(decoder: ValueDecoder) {
    this.#decoder = decoder;
  }

  /** The block in which values lie from now on. */
  enter(bytes: Buffer): void {
    this.#block = bytes;
  }

  /** The block is left and may be overwritten: what lies in it is copied. */
  leave(): void {
    for (let slot = 0; slot < slotCount; slot++) {
      const bit = 1 << slot;
      if (!(this.#present & ~this.#asText & ~this.#isCopied & bit)) continue;
      const value = this.#block.subarray(this.#startOf(slot), this.#endOf(slot));
      this.#starts[slot] = this.#copied.length;
      this.#copied = Buffer.concat([this.#copied, value]);
      this.#ends[slot] = this.#copied.length;
      this.#isCopied |= bit;
    }
    this.#block = nothing;
  }

  clear(): void {
    this.#present = 0;
    this.#asText = 0;
    if (this.#isCopied === 0) return;
    this.#isCopied = 0;
    this.#copied = nothing;
  }

  has(slot: number): boolean {
    return (this.#present & (1 << slot)) !== 0;
  }

  /** False when the object has this attribute already: the first counts. */
  set(slot: number, start: number, end: number): boolean {
    if (this.#present & (1 << slot)) return false;
    this.#present |= 1 << slot;
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    return true;
  }

  /** Adds a continuation line; a comment behind the value so far is dropped, as behind any line. */
  extend(slot: number, start: number, end: number): void {
    if (!(this.#asText & (1 << slot))) this.#toText(slot);
    const value = withoutComment(this.#texts[slot] as string) ?? "";
    if (value.length >= maxValueLength) return;
    this.#texts[slot] = `${value} ${this.#decoder.text(this.#block, start, end)}`.trim();
  }

  /** The value with its comment, trimmed; null when the object has no such attribute. */
  text(slot: number): string | null {
    if (!this.has(slot)) return null;
    if (!(this.#asText & (1 << slot))) this.#toText(slot);
    return this.#texts[slot] as string;
  }

  /** The value without its comment; null when nothing is left. */
  bare(slot: number): string | null {
    if (this.#lies(slot))
      return this.#decoder.bare(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
    return this.has(slot) ? withoutComment(this.#texts[slot] as string) : null;
  }

  /** The value as a handle, in capitals. */
  handle(slot: number): string | null {
    if (this.#lies(slot))
      return this.#decoder.handle(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
    return this.has(slot) ? (withoutComment(this.#texts[slot] as string)?.toUpperCase() ?? null) : null;
  }

  country(): string | null {
    const slot = slots.country;
    const code = this.#lies(slot)
      ? readCountry(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot))
      : undefined;
    return code === undefined ? countryCode(this.bare(slot)) : code;
  }

  /** The registry that `source:` names; a file has the same one nearly throughout. */
  registry(): Registry | null {
    const slot = slots.source;
    if (!this.#lies(slot)) return registryIn(this.text(slot) ?? "");
    return this.#registries.of(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
  }

  /** Reads the value as a range where it lies; false when it is no bytes any more, or of a spelling out of the way. */
  readIpv4(slot: number, ranges: RangeReader): boolean {
    if (!this.#lies(slot)) return false;
    return ranges.readIpv4(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
  }

  readIpv6(slot: number, ranges: RangeReader): boolean {
    if (!this.#lies(slot)) return false;
    return ranges.readIpv6(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
  }

  /** True while the value is bytes. */
  #lies(slot: number): boolean {
    return (this.#present & ~this.#asText & (1 << slot)) !== 0;
  }

  #toText(slot: number): void {
    this.#texts[slot] = this.#decoder.text(this.#bytesOf(slot), this.#startOf(slot), this.#endOf(slot));
    this.#asText |= 1 << slot;
  }

  #bytesOf(slot: number): Buffer {
    return this.#isCopied & (1 << slot) ? this.#copied : this.#block;
  }

  #startOf(slot: number): number {
    return this.#starts[slot] as number;
  }

  #endOf(slot: number): number {
    return this.#ends[slot] as number;
  }
}

/** `RIPE # Filtered` → `ripencc`. */
const registryIn = (source: string) => registryNamed(withoutComment(source) ?? "");
