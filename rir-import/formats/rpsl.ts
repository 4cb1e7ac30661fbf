/**
 * RPSL objects (RFC 2622 section 2, RFC 4012) as RIPE, APNIC, AFRINIC and LACNIC publish them, and ARIN's
 * text dump, which has the same shape with other attribute names. A byte scanner: only the attributes that
 * the tree needs become text.
 *
 * Rules: an empty line ends an object, the last one may lack it; `#` and `%` lines are comments; a line
 * that starts with a space, a tab or `+` continues the value above; ` #` inside a value starts a comment;
 * names are case-insensitive and attributes come in any order; of a repeated attribute the first counts.
 * Departure: an `inetnum:`, `inet6num:` or `organisation:` inside an object that has one already starts a
 * new object (a missing empty line, or a spliced file), so that neither is lost.
 */
import type { Registry } from "#core/subnet/subnet";
import { decodeText, LineCutter } from "./lines.ts";
import {
  countryCode,
  type HolderReference,
  maxTextLength,
  type RecordReader,
  type RecordSink,
  registryNamed,
} from "./record.ts";
import { readRegistryRange } from "./registry-range.ts";

export function openRpslReader(_file: string, sink: RecordSink): RecordReader {
  const scanner = new RpslScanner(sink);
  const cutter = new LineCutter(scanner);
  return {
    push: (chunk) => cutter.push(chunk),
    end: () => {
      cutter.end();
      scanner.end();
    },
  };
}

/** Values longer than this (many continuation lines) are cut: no name or range needs more. */
const maxValueLength = 1024;

/** Attributes that are kept, by name; the number is their place in an object's slots. */
const slots = {
  inetnum: 0,
  inet6num: 1,
  organisation: 2,
  nethandle: 3,
  v6nethandle: 4,
  orgid: 5,
  netrange: 6,
  netname: 7,
  descr: 8,
  country: 9,
  org: 10,
  source: 11,
  owner: 12,
  ownerid: 13,
  "org-name": 14,
  orgname: 15,
  nettype: 16,
} as const;
type SlotName = keyof typeof slots;
const slotCount = Object.keys(slots).length;

/** Attributes that make an object ours wherever they stand in it; `orgid` only when it comes first. */
const classSlots = new Set<number>([
  slots.inetnum,
  slots.inet6num,
  slots.organisation,
  slots.nethandle,
  slots.v6nethandle,
]);

/** Slot numbers by first letter (lower case), to refuse most lines after one byte. */
const slotsByLetter = new Map<number, readonly (readonly [name: string, slot: number])[]>();
for (const [name, slot] of Object.entries(slots)) {
  const letter = name.charCodeAt(0);
  slotsByLetter.set(letter, [...(slotsByLetter.get(letter) ?? []), [name, slot]]);
}

const none = -1;
const colon = 0x3a;

class RpslScanner {
  readonly #sink: RecordSink;
  #values: (string | null)[] = new Array<string | null>(slotCount).fill(null);
  /** Line of the object's first attribute; 0 between objects. */
  #objectLine = 0;
  #className = "";
  /** The class attribute's slot, or `none` for an object that is not ours (yet). */
  #classSlot = none;
  #classLine = 0;
  /** The slot that a continuation line would add to. */
  #openSlot = none;
  #fault: { line: number; reason: string; value: string } | null = null;

  constructor(sink: RecordSink) {
    this.#sink = sink;
  }

  line(bytes: Buffer, start: number, end: number, number: number): void {
    if (start === end) {
      this.#finish();
      return;
    }
    const first = bytes[start]!;
    if (first === 0x23 || first === 0x25) return;
    if (first === 0x20 || first === 0x09 || first === 0x2b) {
      this.#continue(bytes, start + 1, end);
      return;
    }
    const candidates = slotsByLetter.get(first | 0x20);
    if (candidates === undefined && this.#objectLine !== 0) {
      this.#openSlot = none;
      if (this.#classSlot !== none) this.#expectAttribute(bytes, start, end, number);
      return;
    }
    this.#attribute(bytes, start, end, number);
  }

  longLine(beginning: Buffer, number: number): void {
    if (this.#objectLine === 0) this.#begin(number, "");
    this.#openSlot = none;
    this.#fault ??= {
      line: number,
      reason: "a line longer than 65,536 bytes",
      value: decodeText(beginning, 0, Math.min(beginning.length, 80)),
    };
  }

  end(): void {
    this.#finish();
  }

  #attribute(bytes: Buffer, start: number, end: number, number: number): void {
    const nameEnd = endOfName(bytes, start, end);
    this.#openSlot = none;
    if (nameEnd < 0) {
      if (this.#objectLine === 0) this.#begin(number, "");
      this.#blame(bytes, start, end, number);
      return;
    }
    const slot = slotOf(bytes, start, nameEnd);
    if (classSlots.has(slot)) this.#classAttribute(slot, number);
    else if (this.#objectLine === 0) this.#begin(number, decodeText(bytes, start, nameEnd).toLowerCase());
    if (slot === slots.orgid && this.#objectLine === number) this.#setClass(slot, number);
    if (slot === none || this.#values[slot] !== null) return;
    this.#values[slot] = decodeText(bytes, nameEnd + 1, end);
    this.#openSlot = slot;
  }

  #classAttribute(slot: number, number: number): void {
    if (this.#classSlot !== none) this.#finish();
    if (this.#objectLine === 0) this.#begin(number, "");
    this.#setClass(slot, number);
  }

  #setClass(slot: number, number: number): void {
    this.#classSlot = slot;
    this.#classLine = number;
  }

  #continue(bytes: Buffer, start: number, end: number): void {
    if (this.#openSlot === none) return;
    const value = this.#values[this.#openSlot] ?? "";
    if (value.length >= maxValueLength) return;
    const more = decodeText(bytes, start, end);
    this.#values[this.#openSlot] = value === "" ? more : `${value} ${more}`.trimEnd();
  }

  #expectAttribute(bytes: Buffer, start: number, end: number, number: number): void {
    if (endOfName(bytes, start, end) < 0) this.#blame(bytes, start, end, number);
  }

  #blame(bytes: Buffer, start: number, end: number, number: number): void {
    this.#fault ??= {
      line: number,
      reason: "a line without an attribute name",
      value: decodeText(bytes, start, Math.min(end, start + 80)),
    };
  }

  #begin(number: number, className: string): void {
    this.#objectLine = number;
    this.#className = className;
  }

  #finish(): void {
    if (this.#objectLine === 0) return;
    this.#report();
    this.#objectLine = 0;
    this.#className = "";
    this.#classSlot = none;
    this.#openSlot = none;
    this.#fault = null;
    this.#values.fill(null);
  }

  #report(): void {
    if (this.#classSlot === none && (this.#className !== "" || this.#fault === null)) {
      this.#sink.ignore(`object class ${this.#className.slice(0, 40)}`);
      return;
    }
    if (this.#fault !== null) this.#sink.malformed(this.#fault);
    else if (this.#classSlot === slots.organisation) this.#organisation("organisation", "org-name");
    else if (this.#classSlot === slots.orgid) this.#organisation("orgid", "orgname");
    else this.#network();
  }

  #network(): void {
    const isArin = this.#classSlot === slots.nethandle || this.#classSlot === slots.v6nethandle;
    const text = (isArin ? this.#value("netrange") : this.#values[this.#classSlot]) ?? "";
    const reading = readRegistryRange(text);
    if ("reason" in reading) {
      this.#sink.malformed({ line: this.#classLine, reason: reading.reason, value: text });
      return;
    }
    const netType = this.#value("nettype");
    if (netType !== null && /transferred|allocated to (?!arin)|iana/i.test(netType)) {
      this.#sink.ignore("net type of another registry");
      return;
    }
    const registry = isArin ? "arin" : registryNamed(bare(this.#value("source")) ?? "");
    const country = countryCode(bare(this.#value("country")));
    this.#sink.record({
      type: "network",
      line: this.#classLine,
      source: "whois",
      range: reading.range,
      registry,
      name: bare(this.#value("netname")) ?? "",
      country,
      holder: this.#holder(registry, country),
    });
  }

  /** The organisation's handle; else LACNIC's owner; else the description. `mnt-by` is never a name. */
  #holder(registry: Registry | null, country: string | null): HolderReference | null {
    const handle = bare(this.#value("org") ?? this.#value("ownerid") ?? this.#value("orgid"));
    if (handle !== null) return { type: "handle", handle: handle.toUpperCase(), registry };
    const name = bare(this.#value("owner") ?? this.#value("descr"));
    return name === null ? null : { type: "name", name, registry, country };
  }

  #organisation(handleSlot: SlotName, nameSlot: SlotName): void {
    const handle = bare(this.#value(handleSlot));
    const name = bare(this.#value(nameSlot));
    if (handle === null || name === null) {
      const reason =
        handle === null ? "an organisation without a handle" : `an organisation without ${nameSlot}`;
      this.#sink.malformed({ line: this.#classLine, reason, value: handle ?? "" });
      return;
    }
    const registry = handleSlot === "orgid" ? "arin" : registryNamed(bare(this.#value("source")) ?? "");
    const country = countryCode(bare(this.#value("country")));
    this.#sink.record({
      type: "organisation",
      line: this.#classLine,
      registry,
      handle: handle.toUpperCase(),
      name,
      country,
    });
  }

  #value(name: SlotName): string | null {
    return this.#values[slots[name]] ?? null;
  }
}

/** Position of the colon after an attribute name (letters, digits, `-`, `_`, `/`, `*`), or −1. */
function endOfName(bytes: Buffer, start: number, end: number): number {
  const furthest = Math.min(end, start + 64);
  for (let position = start; position < furthest; position++) {
    const code = bytes[position]!;
    if (code === colon) return position === start ? -1 : position;
    const isNameByte = (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x2d;
    if (!isNameByte && !(code >= 0x2a && code <= 0x39) && code !== 0x5f && code !== 0x20) return -1;
  }
  return -1;
}

function slotOf(bytes: Buffer, start: number, end: number): number {
  for (const [name, slot] of slotsByLetter.get(bytes[start]! | 0x20) ?? []) {
    if (name.length === end - start && equalsIgnoringCase(bytes, start, name)) return slot;
  }
  return none;
}

function equalsIgnoringCase(bytes: Buffer, start: number, name: string): boolean {
  for (let index = 1; index < name.length; index++) {
    const code = bytes[start + index]!;
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    if (lower !== name.charCodeAt(index)) return false;
  }
  return true;
}

/** A value without its trailing comment; null when nothing is left. */
function bare(value: string | null): string | null {
  if (value === null) return null;
  const comment = value.startsWith("#") ? 0 : value.search(/[ \t]#/);
  const text = (comment < 0 ? value : value.slice(0, comment)).trim().slice(0, maxTextLength);
  return text === "" ? null : text;
}
