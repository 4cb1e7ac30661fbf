/**
 * RPSL objects (RFC 2622, RFC 4012) as RIPE, APNIC, AFRINIC and LACNIC publish them, and ARIN's text dump,
 * which has the same shape with other attribute names. rpsl-scanner.ts finds the objects; here they become
 * networks and organisations. ` #` inside a value starts a comment.
 */

import type { Registry } from "#coordinator/subnets/subnet";
import { SourceFileError } from "#core/errors";
import type { IpRange } from "#core/ip/range";
import { geofeedUrlIn } from "./geofeed.ts";
import { BlockCutter } from "./line-blocks.ts";
import { RangeReader } from "./range-reader.ts";
import type {
  HolderBytes,
  HolderReference,
  NetworkRecord,
  RecordReader,
  RecordSink,
  RegistryRecord,
} from "./record.ts";
import { readRegistryRange } from "./registry-range.ts";
import { RpslScanner } from "./rpsl-scanner.ts";
import { type RpslValues, slots } from "./rpsl-values.ts";
import { FoundText, type TextBytes, ValueDecoder } from "./text-decoding.ts";

export function openRpslReader(file: string, sink: RecordSink): RecordReader {
  return new RpslReader(file, sink);
}

/** What stands before a piece of a file, as far as its reading depends on it. */
export interface BeforePiece {
  readonly lines: number;
  readonly sourcesSeen: number;
}

/** Reads a file, or a piece of one that begins behind an empty line. */
export class RpslReader implements RecordReader {
  readonly #file: string;
  readonly #sink: RecordSink;
  readonly #decoder = new ValueDecoder();
  readonly #scanner: RpslScanner;
  readonly #values: RpslValues;
  readonly #cutter: BlockCutter;
  readonly #network: RpslNetwork;
  readonly #ranges = new RangeReader();
  readonly #ipv6Range = () => this.#ranges.ipv6;
  /** RIPE's form ends each object with its source: one that lacks it at the file's end was cut off. */
  #sourcesSeen = 0;
  #isEnding: "inside a line" | "behind a line" | null = null;
  #before: BeforePiece = { lines: 0, sourcesSeen: 0 };

  constructor(file: string, sink: RecordSink) {
    this.#file = file;
    this.#sink = sink;
    this.#scanner = new RpslScanner(this.#decoder, {
      object: (slot, line) => this.#object(slot, line),
      other: (className) => sink.ignore(`object class ${className.slice(0, 40)}`),
      malformed: (problem) => sink.malformed(problem),
    });
    this.#values = this.#scanner.values;
    this.#cutter = new BlockCutter(this.#scanner);
    this.#network = new RpslNetwork(this.#values);
  }

  /** Lines begun so far. */
  get lines(): number {
    return this.#scanner.lines;
  }

  /** Objects of ours so far that say their source. */
  get sourcesSeen(): number {
    return this.#sourcesSeen;
  }

  push(chunk: Buffer): void {
    this.#cutter.push(chunk);
  }

  /** Throws when the file ends inside a line and its last object is not whole: a broken download. */
  end(before: BeforePiece = { lines: 0, sourcesSeen: 0 }): void {
    this.#before = before;
    this.#isEnding = this.#cutter.insideLine ? "inside a line" : "behind a line";
    this.#cutter.end();
    this.#scanner.end();
    const encoding = this.#decoder.counts;
    if (encoding !== null) this.#sink.facts({ encoding });
  }

  #object(slot: number, line: number): void {
    if (this.#values.has(slots.source)) this.#sourcesSeen++;
    if (slot === slots.organisation) this.#organisation(slot, "org-name", line);
    else if (slot === slots.orgid) this.#organisation(slot, "orgname", line);
    else if (slot === slots.nethandle || slot === slots.v6nethandle) this.#arinNetwork(line);
    else this.#networkAt(slot, line, this.#values.registry());
  }

  #emit(record: RegistryRecord): void {
    const lacksSource = this.#isEnding !== null && !this.#values.has(slots.source);
    if (lacksSource && this.#before.sourcesSeen + this.#sourcesSeen > 0) this.#cutOff(record.line);
    else this.#sink.record(record);
  }

  #cutOff(line: number): void {
    const reason = "the file is cut off: its last object has no source, as the others have";
    if (this.#isEnding === "inside a line")
      throw new SourceFileError(this.#file, this.#before.lines + this.#scanner.lines, reason);
    this.#sink.malformed({ line, reason, value: "" });
  }

  /** ARIN's text says in words what is another registry's. */
  #arinNetwork(line: number): void {
    if (!isOfAnotherRegistry(this.#values.text(slots.nettype))) this.#networkAt(slots.netrange, line, "arin");
    else this.#sink.ignore("net type of another registry");
  }

  #networkAt(slot: number, line: number, registry: RpslNetwork["registry"]): void {
    const isRange =
      slot === slots.inet6num ? this.#beginIpv6(slot, line, registry) : this.#beginIpv4(slot, line, registry);
    if (isRange || this.#beginFromText(slot, line, registry)) this.#emit(this.#network);
  }

  #beginIpv4(slot: number, line: number, registry: RpslNetwork["registry"]): boolean {
    if (!this.#values.readIpv4(slot, this.#ranges)) return false;
    this.#network.begin(line, registry, this.#ranges.ipv4);
    return true;
  }

  #beginIpv6(slot: number, line: number, registry: RpslNetwork["registry"]): boolean {
    if (!this.#values.readIpv6(slot, this.#ranges)) return false;
    this.#network.begin(line, registry, this.#ipv6Range);
    this.#network.ipv6Words = this.#ranges.words;
    return true;
  }

  /** Every other spelling, and LACNIC's IPv6 under `inetnum:`. False for what is no range, which is reported. */
  #beginFromText(slot: number, line: number, registry: RpslNetwork["registry"]): boolean {
    if (slot !== slots.inet6num && this.#beginIpv6(slot, line, registry)) return true;
    const value = this.#values.text(slot) ?? "";
    const reading = readRegistryRange(value);
    if ("range" in reading) this.#network.begin(line, registry, reading.range);
    else this.#sink.malformed({ line, reason: reading.reason, value });
    return "range" in reading;
  }

  #organisation(slot: number, nameAttribute: "org-name" | "orgname", line: number): void {
    const values = this.#values;
    const handle = values.handle(slot);
    const name = values.bare(slots[nameAttribute]);
    if (handle === null || name === null) {
      const reason =
        handle === null ? "an organisation without a handle" : `an organisation without ${nameAttribute}`;
      this.#sink.malformed({ line, reason, value: handle ?? "" });
      return;
    }
    const registry = slot === slots.orgid ? "arin" : values.registry();
    this.#emit({ type: "organisation", line, registry, handle, name, country: values.country() });
  }
}

/** ARIN's net types in words: `Allocated to RIPE NCC`, `Early Registrations, Transferred to APNIC`, `IANA …`. */
function isOfAnotherRegistry(netType: string | null): boolean {
  return netType !== null && /transferred|allocated to (?!arin)|iana/i.test(netType);
}

// One RPSL network as a record whose texts are made when they are asked for. There is one of these per reader: a
// database has ten million networks, and whoever takes a record takes what it needs of it at once.

class RpslNetwork implements NetworkRecord {
  readonly type = "network";
  readonly source = "whois";
  line = 0;
  registry: Registry | null = null;
  ipv6Words: Uint32Array | null = null;
  readonly #values: RpslValues;
  #range: IpRange | (() => IpRange) = { family: 4, first: 0, last: 0 };
  #name: string | null = null;
  #country: string | null | undefined;
  #holder: HolderReference | null | undefined;
  readonly #nameBytes = new FoundText();
  #hasNameBytes: boolean | null = null;
  readonly #holderBytes = new RpslHolderBytes();
  #hasHolderBytes: boolean | null = null;

  constructor(values: RpslValues) {
    this.#values = values;
  }

  /** The record of the object whose values the scanner holds now. */
  begin(line: number, registry: Registry | null, range: IpRange | (() => IpRange)): void {
    this.line = line;
    this.registry = registry;
    this.ipv6Words = null;
    this.#range = range;
    this.#name = null;
    this.#country = undefined;
    this.#holder = undefined;
    this.#hasNameBytes = null;
    this.#hasHolderBytes = null;
  }

  get range(): IpRange {
    if (typeof this.#range === "function") this.#range = this.#range();
    return this.#range;
  }

  get name(): string {
    this.#name ??= this.#values.bare(slots.netname) ?? "";
    return this.#name;
  }

  get nameBytes(): TextBytes | null {
    this.#hasNameBytes ??= this.#values.bareBytes(slots.netname, this.#nameBytes);
    return this.#hasNameBytes ? this.#nameBytes : null;
  }

  get holderBytes(): HolderBytes | null {
    this.#hasHolderBytes ??= this.#findHolder();
    return this.#hasHolderBytes ? this.#holderBytes : null;
  }

  get country(): string | null {
    if (this.#country === undefined) this.#country = this.#values.country();
    return this.#country;
  }

  get geofeed(): string | null {
    const values = this.#values;
    if (!values.has(slots.geofeed) && !values.has(slots.remarks) && !values.has(slots.comment)) return null;
    for (const slot of geofeedSlots) {
      const value = values.bare(slot);
      const url = value === null ? null : geofeedUrlIn(value);
      if (url !== null) return url;
    }
    return null;
  }

  get holder(): HolderReference | null {
    if (this.#holder === undefined) this.#holder = this.#readHolder();
    return this.#holder;
  }

  /** As `#readHolder`, without texts; false where it takes those, or nothing names a holder. */
  #findHolder(): boolean {
    const values = this.#values;
    const found = this.#holderBytes;
    found.registry = this.registry;
    for (const slot of handleSlots) {
      if (!values.bareBytes(slot, found.text, true)) return false;
      if (found.text.isEmpty) continue;
      if (!values.bareBytes(slots.owner, found.owner)) return false;
      found.type = "handle";
      found.country = null;
      return true;
    }
    if (!values.bareBytes(slots.owner, found.text)) return false;
    if (found.text.isEmpty && !values.bareBytes(slots.descr, found.text)) return false;
    if (found.text.isEmpty) return false;
    found.type = "name";
    found.country = this.country;
    found.owner.set(found.text.bytes, 0, 0);
    return true;
  }

  /** The organisation's handle; else LACNIC's owner; else the description. `mnt-by` is never a name. */
  #readHolder(): HolderReference | null {
    const values = this.#values;
    const registry = this.registry;
    const handle = values.handle(slots.org) ?? values.handle(slots.ownerid) ?? values.handle(slots.orgid);
    const owner = values.bare(slots.owner);
    if (handle !== null) return { type: "handle", handle, registry, name: owner };
    const name = owner ?? values.bare(slots.descr);
    return name === null ? null : { type: "name", name, registry, country: this.country };
  }
}

/** The attribute before remarks, as RFC 9632 section 3 ranks them. */
const geofeedSlots = [slots.geofeed, slots.remarks, slots.comment] as const;

const handleSlots = [slots.org, slots.ownerid, slots.orgid] as const;

class RpslHolderBytes implements HolderBytes {
  type: HolderBytes["type"] = "name";
  registry: Registry | null = null;
  country: string | null = null;
  readonly text = new FoundText();
  readonly owner = new FoundText();

  get ownName(): TextBytes | null {
    return this.owner.isEmpty ? null : this.owner;
  }
}
