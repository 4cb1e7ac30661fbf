/**
 * One line of statistics as a record whose texts are made when they are asked for; there is one of these per
 * reader, as in rpsl-network.ts.
 */

import type { Registry } from "#coordinator/subnets/subnet";
import { type IpRange, rangeOfPrefix } from "#core/ip/range";
import { countryCode, readCountry } from "./country.ts";
import type { DelegatedLines } from "./delegated-lines.ts";
import { readIpv6 } from "./ipv6-text.ts";
import { RangeReader } from "./range-reader.ts";
import type { HolderReference, NetworkRecord } from "./record.ts";
import type { ValueDecoder } from "./text-decoding.ts";

const countryField = 1;
const startField = 3;
const valueField = 4;
const opaqueIdField = 7;
/** 2³² has ten digits, 128 three. */
const maxCountDigits = 10;
const maxLengthDigits = 3;

export class DelegatedNetwork implements NetworkRecord {
  readonly type = "network";
  source: NetworkRecord["source"] = "statistics";
  line = 0;
  registry: Registry | null = null;
  readonly name = "";
  ipv6Words: Uint32Array | null = null;
  readonly #lines: DelegatedLines;
  readonly #decoder: ValueDecoder;
  readonly #ranges = new RangeReader();
  #range: IpRange | null = null;

  constructor(lines: DelegatedLines, decoder: ValueDecoder) {
    this.#lines = lines;
    this.#decoder = decoder;
  }

  /** The record of the line at hand; else why its addresses make none. `receiver`: whom IANA gave the block to. */
  begin(registry: Registry, receiver: Registry | null, type: "ipv4" | "ipv6"): string | null {
    this.line = this.#lines.line;
    this.source = registry === "iana" ? "iana" : "statistics";
    this.registry = receiver ?? registry;
    this.#range = null;
    this.ipv6Words = null;
    return type === "ipv4" ? this.#readCount() : this.#readPrefix();
  }

  get range(): IpRange {
    this.#range ??= this.#ranges.ipv6;
    return this.#range;
  }

  get country(): string | null {
    const lines = this.#lines;
    const code = readCountry(lines.bytes, lines.start(countryField), lines.end(countryField));
    return code === undefined ? countryCode(lines.text(countryField)) : code;
  }

  get holder(): HolderReference | null {
    const lines = this.#lines;
    if (lines.count <= opaqueIdField || this.source === "iana") return null;
    this.#decoder.line = this.line;
    const id = this.#decoder.text(lines.bytes, lines.start(opaqueIdField), lines.end(opaqueIdField));
    return id === "" ? null : { type: "opaque-id", id, registry: this.registry as Registry };
  }

  /** IPv4 by a count of addresses. */
  #readCount(): string | null {
    const lines = this.#lines;
    const ranges = this.#ranges;
    if (!ranges.readIpv4Address(lines.bytes, lines.start(startField), lines.end(startField)))
      return "the start is not an IPv4 address";
    const count = this.#number(maxCountDigits);
    if (count < 1) return "the count is not a positive number";
    ranges.last = ranges.first + count - 1;
    if (ranges.last > 0xffffffff) return "the count passes the end of the address space";
    this.#range = ranges.ipv4;
    return null;
  }

  #readPrefix(): string | null {
    const lines = this.#lines;
    const ranges = this.#ranges;
    const length = this.#number(maxLengthDigits);
    const isLength = length >= 0 && length <= 128;
    if (
      ranges.readIpv6Block(lines.bytes, lines.start(startField), lines.end(startField), isLength ? length : 0)
    )
      this.ipv6Words = ranges.words;
    else {
      const value = readIpv6(lines.text(startField));
      if (value === null) return "the start is not an IPv6 address";
      if (isLength) this.#range = rangeOfPrefix({ family: 6, value }, length);
    }
    return isLength ? null : "the prefix length is not between 0 and 128";
  }

  /** The value field as a whole number of that many digits at most; −1 when it is none. */
  #number(maxDigits: number): number {
    const { bytes } = this.#lines;
    const start = this.#lines.start(valueField);
    const end = this.#lines.end(valueField);
    if (start === end || end - start > maxDigits) return -1;
    let value = 0;
    for (let at = start; at < end; at++) {
      const digit = (bytes[at] as number) - 0x30;
      if (digit < 0 || digit > 9) return -1;
      value = value * 10 + digit;
    }
    return value;
  }
}
