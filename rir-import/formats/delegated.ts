/**
 * Statistics of delegated resources, plain and extended, as the registries and the NRO publish them:
 * `registry|cc|type|start|value|date|status[|opaque-id[|source]]`, 7, 8 or 9 fields, any version line.
 * IPv4 is a start and a count of addresses that need not be a power of two nor aligned; IPv6 a start and
 * a prefix length. An opaque-id says which records have one holder, within this file only.
 * IANA's own file has the same shape, with the receiving registry in place of the status.
 */
import { SourceFileError } from "#core/errors";
import { type IpRange, rangeOfPrefix } from "#core/ip/range";
import type { Registry } from "#core/subnet/subnet";
import { readIpv6 } from "./ipv6-text.ts";
import { decodeText, LineCutter } from "./lines.ts";
import {
  countryCode,
  type HolderReference,
  type RecordReader,
  type RecordSink,
  registryNamed,
} from "./record.ts";
import { readIpv4 } from "./registry-range.ts";

export function openDelegatedReader(file: string, sink: RecordSink): RecordReader {
  const reader = new DelegatedReader(file, sink);
  const cutter = new LineCutter(reader);
  return {
    push: (chunk) => cutter.push(chunk),
    end: () => {
      const isCutOff = cutter.insideLine;
      cutter.end();
      reader.end(isCutOff, cutter.lines);
    },
  };
}

class DelegatedReader {
  readonly #file: string;
  readonly #sink: RecordSink;
  readonly #promised = new Map<string, number>();
  readonly #found = new Map<string, number>();
  #hasVersion = false;
  #warnedVersion = false;

  constructor(file: string, sink: RecordSink) {
    this.#file = file;
    this.#sink = sink;
  }

  line(bytes: Buffer, start: number, end: number, number: number): void {
    if (start === end || bytes[start] === 0x23) return;
    const text = decodeText(bytes, start, end);
    if (text === "") return;
    const fields = text.split("|", 12);
    if (isVersionLine(text, fields)) this.#version(fields);
    else if (fields[5] === "summary") this.#summary(fields);
    else this.#delegation(fields, number, text);
  }

  longLine(beginning: Buffer, number: number): void {
    const value = decodeText(beginning, 0, 80);
    this.#sink.malformed({ line: number, reason: "a line longer than 65,536 bytes", value });
  }

  /** Throws when the file ends inside a line and has fewer records than it promised: a broken download. */
  end(isCutOff: boolean, lines: number): void {
    for (const [type, promised] of this.#promised) {
      const found = this.#found.get(type) ?? 0;
      if (found === promised) continue;
      const words = `the summary promises ${promised} ${type} records, the file has ${found}`;
      if (isCutOff && found < promised) {
        throw new SourceFileError(this.#file, lines, `the file is cut off inside a line: ${words}`);
      }
      this.#sink.warn(words);
    }
  }

  #version(fields: readonly string[]): void {
    this.#hasVersion = true;
    const registry = registryNamed(fields[1]!);
    const fileDate = isoDate(fields[5] ?? "") ?? isoDate(fields[2] ?? "");
    this.#sink.facts({ ...(registry && { registry }), ...(fileDate && { fileDate }) });
  }

  #summary(fields: readonly string[]): void {
    const count = Number(fields[4]);
    if (Number.isInteger(count)) this.#promised.set(fields[2]!.slice(0, 8), count);
  }

  #delegation(fields: readonly string[], line: number, text: string): void {
    this.#expectVersion();
    const registry = registryNamed(fields[0]!);
    const type = fields[2] ?? "";
    if (fields.length < 7 || registry === null || !/^(asn|ipv4|ipv6)$/.test(type)) {
      this.#sink.malformed({ line, reason: faultOf(fields, registry), value: text });
      return;
    }
    this.#found.set(type, (this.#found.get(type) ?? 0) + 1);
    const reason = reasonToIgnore(registry, type, fields[6]!.toLowerCase());
    if (reason !== null) this.#sink.ignore(reason);
    else this.#network(registry, fields, { line, text });
  }

  #network(registry: Registry, fields: readonly string[], at: { line: number; text: string }): void {
    const [, country, type, start, value, , status, opaqueId] = fields as [string, ...string[]];
    const range = type === "ipv4" ? readCount(start!, value!) : readPrefix(start!, value!);
    if (typeof range === "string") {
      this.#sink.malformed({ line: at.line, reason: range, value: at.text });
      return;
    }
    this.#sink.record({
      type: "network",
      line: at.line,
      source: registry === "iana" ? "iana" : "statistics",
      range,
      registry: receiverOf(registry, status!) ?? registry,
      name: "",
      country: countryCode(country!),
      holder: holderOfRecord(registry, opaqueId),
    });
  }

  #expectVersion(): void {
    if (this.#hasVersion || this.#warnedVersion) return;
    this.#warnedVersion = true;
    this.#sink.warn("the file has no version line");
  }
}

/** In IANA's own statistics the registry that a block was given to stands in place of the status. */
function receiverOf(registry: Registry, status: string): Registry | null {
  return registry === "iana" ? registryNamed(status) : null;
}

function reasonToIgnore(registry: Registry, type: string, status: string): string | null {
  if (type === "asn") return "autonomous system number";
  if (status === "allocated" || status === "assigned" || receiverOf(registry, status) !== null) return null;
  return /^[a-z-]{1,20}$/.test(status) ? `status ${status}` : "another status";
}

/** `2|…`, `2.3|…`: a number in place of the registry. */
function isVersionLine(text: string, fields: readonly string[]): boolean {
  const first = text.charCodeAt(0);
  return first >= 0x30 && first <= 0x39 && fields.length >= 6 && /^\d+(\.\d+)?$/.test(fields[0]!);
}

function holderOfRecord(registry: Registry, opaqueId: string | undefined): HolderReference | null {
  const id = opaqueId?.trim() ?? "";
  return id === "" || registry === "iana" ? null : { type: "opaque-id", id, registry };
}

function faultOf(fields: readonly string[], registry: Registry | null): string {
  if (fields.length < 7) return `${fields.length} fields, at least 7 expected`;
  return registry === null ? "an unknown registry" : "an unknown type";
}

/** IPv4 by a count of addresses; the reason in words when it is none. */
function readCount(start: string, count: string): IpRange | string {
  const first = readIpv4(start);
  if (first < 0) return "the start is not an IPv4 address";
  if (!/^[1-9]\d{0,9}$/.test(count)) return "the count is not a positive number";
  const last = first + Number(count) - 1;
  return last > 0xffffffff ? "the count passes the end of the address space" : { family: 4, first, last };
}

function readPrefix(start: string, length: string): IpRange | string {
  const value = readIpv6(start);
  if (value === null) return "the start is not an IPv6 address";
  const range = /^\d{1,3}$/.test(length) ? rangeOfPrefix({ family: 6, value }, Number(length)) : null;
  return range ?? "the prefix length is not between 0 and 128";
}

/** `20260821` → `2026-08-21`; null for anything else, such as `00000000`. */
function isoDate(text: string): string | null {
  const parts = /^(19|20)(\d\d)(0[1-9]|1[0-2])([0-2]\d|3[01])$/.exec(text);
  if (!parts) return null;
  const iso = `${parts[1]}${parts[2]}-${parts[3]}-${parts[4]}`;
  const time = Date.parse(`${iso}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(iso) ? iso : null;
}
