/**
 * Statistics of delegated resources, plain and extended, as the registries and the NRO publish them:
 * `registry|cc|type|start|value|date|status[|opaque-id[|source]]`, 7, 8 or 9 fields, any version line.
 * IPv4 is a start and a count of addresses that need not be a power of two nor aligned; IPv6 a start and
 * a prefix length. An opaque-id says which records have one holder, within this file only.
 * IANA's own file has the same shape, with the receiving registry in place of the status.
 */

import type { Registry } from "#coordinator/subnets/subnet";
import { SourceFileError } from "#core/errors";
import { foreignDateMs } from "#core/foreign-dates";
import { type IpRange, rangeOfPrefix } from "#core/ip/range";
import { DelegatedLines, RememberedBytes } from "./delegated-lines.ts";
import { BlockCutter } from "./line-blocks.ts";
import { RangeReader } from "./range-reader.ts";
import {
  type HolderBytes,
  type HolderReference,
  type NetworkRecord,
  type RecordReader,
  type RecordSink,
  registryNamed,
} from "./record.ts";
import { readIpv6 } from "./registry-range.ts";
import { countryCode, readCountry } from "./rpsl-values.ts";
import { FoundText, type TextBytes, ValueDecoder } from "./text-decoding.ts";

export function openDelegatedReader(file: string, sink: RecordSink): RecordReader {
  return new DelegatedReader(file, sink);
}

const types: readonly string[] = ["asn", "ipv4", "ipv6"];

class DelegatedReader implements RecordReader {
  readonly #file: string;
  readonly #sink: RecordSink;
  readonly #decoder = new ValueDecoder();
  readonly #lines: DelegatedLines;
  readonly #cutter: BlockCutter;
  readonly #network: DelegatedNetwork;
  readonly #promised = new Map<string, number>();
  /** Records so far, by type as in `types`. */
  readonly #found = [0, 0, 0];
  readonly #registry = new RememberedBytes(registryNamed);
  readonly #type = new RememberedBytes((text) => types.indexOf(text));
  readonly #reason = new RememberedBytes(reasonToIgnore);
  #hasVersion = false;
  #warnedVersion = false;

  constructor(file: string, sink: RecordSink) {
    this.#file = file;
    this.#sink = sink;
    this.#lines = new DelegatedLines({
      fields: () => this.#fields(),
      malformed: (problem) => sink.malformed(problem),
    });
    this.#cutter = new BlockCutter(this.#lines);
    this.#network = new DelegatedNetwork(this.#lines, this.#decoder);
  }

  push(chunk: Buffer): void {
    this.#cutter.push(chunk);
  }

  /** Throws when the file ends inside a line and has fewer records than it promised: a broken download. */
  end(): void {
    const isCutOff = this.#cutter.insideLine;
    this.#cutter.end();
    for (const [type, promised] of this.#promised) this.#compare(type, promised, isCutOff);
    const encoding = this.#decoder.counts;
    if (encoding !== null) this.#sink.facts({ encoding });
  }

  #compare(type: string, promised: number, isCutOff: boolean): void {
    const found = this.#found[types.indexOf(type)] ?? 0;
    if (found === promised) return;
    const words = `the summary promises ${promised} ${type} records, the file has ${found}`;
    if (isCutOff && found < promised) {
      const reason = `the file is cut off inside a line: ${words}`;
      throw new SourceFileError(this.#file, this.#lines.line, reason);
    }
    this.#sink.warn(words);
  }

  #fields(): void {
    const lines = this.#lines;
    if (isVersionLine(lines)) this.#version();
    else if (isSummary(lines)) this.#summary();
    else this.#delegation();
  }

  #version(): void {
    this.#hasVersion = true;
    const registry = registryNamed(this.#lines.text(1));
    const fileDate = isoDate(this.#lines.text(5)) ?? isoDate(this.#lines.text(2));
    this.#sink.facts({ ...(registry && { registry }), ...(fileDate && { fileDate }) });
  }

  #summary(): void {
    const count = Number(this.#lines.text(4));
    if (Number.isInteger(count)) this.#promised.set(this.#lines.text(2).slice(0, 8), count);
  }

  #delegation(): void {
    if (!this.#hasVersion) this.#warnOfVersion();
    const lines = this.#lines;
    const registry = lines.meaning(0, this.#registry);
    const type = lines.count < 3 ? -1 : lines.meaning(2, this.#type);
    if (lines.count < 7 || registry === null || type < 0) {
      const reason = faultOf(lines.count, registry !== null);
      this.#sink.malformed({ line: lines.line, reason, value: lines.whole });
      return;
    }
    this.#found[type] = (this.#found[type] as number) + 1;
    const receiver = registry === "iana" ? registryNamed(lines.text(6)) : null;
    const reason = type === 0 ? "autonomous system number" : receiver ? null : lines.meaning(6, this.#reason);
    if (reason !== null) this.#sink.ignore(reason);
    else this.#emit(registry, receiver, types[type] as "ipv4" | "ipv6");
  }

  #emit(
    registry: NonNullable<DelegatedNetwork["registry"]>,
    receiver: typeof registry | null,
    type: "ipv4" | "ipv6",
  ) {
    const fault = this.#network.begin(registry, receiver, type);
    if (fault === null) this.#sink.record(this.#network);
    else this.#sink.malformed({ line: this.#lines.line, reason: fault, value: this.#lines.whole });
  }

  #warnOfVersion(): void {
    if (this.#warnedVersion) return;
    this.#warnedVersion = true;
    this.#sink.warn("the file has no version line");
  }
}

/** `2|…`, `2.3|…`: a number in place of the registry. */
function isVersionLine(lines: DelegatedLines): boolean {
  const first = lines.bytes[lines.start(0)] as number;
  return first >= 0x30 && first <= 0x39 && lines.count >= 6 && /^\d+(\.\d+)?$/.test(lines.text(0));
}

/** A date stands where a summary has its word, in nearly all lines. */
function isSummary(lines: DelegatedLines): boolean {
  return lines.count > 5 && lines.bytes[lines.start(5)] === 0x73 && lines.text(5) === "summary";
}

function reasonToIgnore(text: string): string | null {
  const status = text.toLowerCase();
  if (status === "allocated" || status === "assigned") return null;
  return /^[a-z-]{1,20}$/.test(status) ? `status ${status}` : "another status";
}

function faultOf(fields: number, isKnown: boolean): string {
  if (fields < 7) return `${fields} fields, at least 7 expected`;
  return isKnown ? "an unknown type" : "an unknown registry";
}

/** `20260821` → `2026-08-21`; null for anything else, such as `00000000`. */
function isoDate(text: string): string | null {
  const parts = /^(19|20)(\d\d)(0[1-9]|1[0-2])([0-2]\d|3[01])$/.exec(text);
  if (!parts) return null;
  const iso = `${parts[1]}${parts[2]}-${parts[3]}-${parts[4]}`;
  return foreignDateMs(iso) === null ? null : iso;
}

// One line of statistics as a record whose texts are made when they are asked for; there is one of these per
// reader.

const countryField = 1;
const startField = 3;
const valueField = 4;
const opaqueIdField = 7;

/** 2³² has ten digits, 128 three. */
const maxCountDigits = 10;

const maxLengthDigits = 3;

class DelegatedNetwork implements NetworkRecord {
  readonly type = "network";
  source: NetworkRecord["source"] = "statistics";
  line = 0;
  registry: Registry | null = null;
  readonly name = "";
  readonly nameBytes: TextBytes = new FoundText();
  ipv6Words: Uint32Array | null = null;
  readonly #lines: DelegatedLines;
  readonly #decoder: ValueDecoder;
  readonly #ranges = new RangeReader();
  readonly #holderBytes = new DelegatedHolderBytes();
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

  get holderBytes(): HolderBytes | null {
    const lines = this.#lines;
    if (lines.count <= opaqueIdField || this.source === "iana") return null;
    const found = this.#holderBytes;
    found.registry = this.registry;
    const start = lines.start(opaqueIdField);
    const end = lines.end(opaqueIdField);
    return this.#decoder.textBytes(lines.bytes, start, end, found.text) && !found.text.isEmpty ? found : null;
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

class DelegatedHolderBytes implements HolderBytes {
  readonly type = "opaque-id";
  registry: Registry | null = null;
  readonly country = null;
  readonly ownName = null;
  readonly text = new FoundText();
}
