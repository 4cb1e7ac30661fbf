/**
 * Reads delegated statistics, plain and extended, of the registries and the NRO:
 * `registry|cc|type|start|value|date|status[|opaque-id[|source]]`, with 7, 8 or 9 fields and any version line. IPv4 has
 * a start and a count of addresses, which need not be a power of two or aligned. IPv6 has a start and a prefix length.
 * An opaque-id identifies a holder within this file only. IANA's file has the receiving registry instead of the status.
 */
import type { Registry } from "#coordinator/place/subnets/subnet";
import { SourceFileError } from "#core/errors";
import { foreignDateMs } from "#core/foreign-dates";
import { type IpRange, rangeOfPrefix } from "#core/ip/range";
import {
  countryCode,
  type HolderReference,
  type RecordReader,
  type RecordSink,
  registryNamed,
} from "./record.ts";
import { readIpv4, readIpv6 } from "./registry-range.ts";
import { decodeText, LineCutter, type LineHandler, tooLongReason, ValueDecoder } from "./text-decoding.ts";

export const openDelegatedReader = (file: string, sink: RecordSink): RecordReader =>
  new DelegatedReader(file, sink);

class DelegatedReader implements RecordReader, LineHandler {
  readonly #file: string;
  readonly #sink: RecordSink;
  readonly #decoder = new ValueDecoder();
  readonly #lines = new LineCutter(this);
  readonly #promised = new Map<string, number>();
  readonly #found = new Map([
    ["asn", 0],
    ["ipv4", 0],
    ["ipv6", 0],
  ]);
  #hasVersion = false;
  #warnedVersion = false;

  constructor(file: string, sink: RecordSink) {
    this.#file = file;
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    this.#lines.push(chunk);
  }

  /** Throws when the file ends inside a line with fewer records than announced, because the download was cut off. */
  end(): void {
    const isCutOff = this.#lines.insideLine;
    this.#lines.end();
    for (const [type, promised] of this.#promised) this.#compare(type, promised, isCutOff);
    const encoding = this.#decoder.counts;
    if (encoding !== null) this.#sink.facts({ encoding });
  }

  #compare(type: string, promised: number, isCutOff: boolean): void {
    const found = this.#found.get(type) ?? 0;
    if (found === promised) return;
    const words = `the summary promises ${promised} ${type} records, the file has ${found}`;
    if (isCutOff && found < promised) {
      const reason = `the file is cut off inside a line: ${words}`;
      throw new SourceFileError(this.#file, this.#lines.lines, reason);
    }
    this.#sink.warn(words);
  }

  longLine(beginning: string, line: number): void {
    this.#sink.malformed({ line, reason: tooLongReason, value: decodeText(beginning) });
  }

  line(text: string, line: number): void {
    if (text === "" || text.startsWith("#")) return;
    // The format has at most nine fields.
    const fields = text.split("|", 12);
    if (fields.length === 1 && decodeText(text) === "") return;
    if (fields.length >= 6 && /^\d+(\.\d+)?$/.test(fields[0]!)) this.#version(fields);
    else if (fields[5] === "summary") this.#summary(fields);
    else this.#delegation(fields, text, line);
  }

  #version([, name, serial, , , endDate]: readonly string[]): void {
    this.#hasVersion = true;
    const registry = registryNamed(name!);
    const fileDate = isoDate(endDate!) ?? isoDate(serial!);
    this.#sink.facts({ ...(registry && { registry }), ...(fileDate && { fileDate }) });
  }

  #summary([, , type, , count]: readonly string[]): void {
    if (Number.isInteger(Number(count))) this.#promised.set(decodeText(type!).slice(0, 8), Number(count));
  }

  #delegation(fields: readonly string[], whole: string, line: number): void {
    if (!this.#hasVersion && !this.#warnedVersion) {
      this.#warnedVersion = true;
      this.#sink.warn("the file has no version line");
    }
    const [name = "", country = "", type = "", start = "", value = "", , status = ""] = fields.map((field) =>
      field.trim(),
    );
    const opaqueId = fields[7];
    const registry = registryNamed(name);
    const found = this.#found.get(type);
    const malformed = (reason: string) => {
      this.#sink.malformed({ line, reason, value: decodeText(whole) });
    };
    if (fields.length < 7 || registry === null || found === undefined) {
      const unknown = registry === null ? "an unknown registry" : "an unknown type";
      malformed(fields.length < 7 ? `${fields.length} fields, at least 7 expected` : unknown);
      return;
    }
    this.#found.set(type, found + 1);
    const isIana = registry === "iana";
    const receiver = isIana ? registryNamed(status) : null;
    const ignored = type === "asn" ? "autonomous system number" : receiver ? null : reasonToIgnore(status);
    if (ignored !== null) {
      this.#sink.ignore(ignored);
      return;
    }
    const range = type === "ipv4" ? countedRange(start, value) : prefixRange(start, value);
    if (typeof range === "string") malformed(range);
    else
      this.#sink.record({
        type: "network",
        source: isIana ? "iana" : "statistics",
        line,
        registry: receiver ?? registry,
        range,
        name: "",
        country: countryCode(country),
        holder: isIana || opaqueId === undefined ? null : this.#holder(opaqueId, registry, line),
      });
  }

  #holder(opaqueId: string, registry: Registry, line: number): HolderReference | null {
    this.#decoder.line = line;
    const id = this.#decoder.text(opaqueId);
    return id === "" ? null : { type: "opaque-id", id, registry };
  }
}

function reasonToIgnore(written: string): string | null {
  const status = written.toLowerCase();
  if (status === "allocated" || status === "assigned") return null;
  return /^[a-z-]{1,20}$/.test(status) ? `status ${status}` : "another status";
}

function countedRange(start: string, value: string): IpRange | string {
  const first = readIpv4(start);
  if (first < 0) return "the start is not an IPv4 address";
  const count = /^\d{1,10}$/.test(value) ? Number(value) : 0;
  if (count < 1) return "the count is not a positive number";
  const last = first + count - 1;
  return last > 0xffffffff ? "the count passes the end of the address space" : { family: 4, first, last };
}

function prefixRange(start: string, value: string): IpRange | string {
  const address = readIpv6(start);
  if (address === null) return "the start is not an IPv6 address";
  const length = /^\d{1,3}$/.test(value) ? Number(value) : -1;
  return rangeOfPrefix({ family: 6, value: address }, length) ?? "the prefix length is not between 0 and 128";
}

/** Example: `20260821` gives `2026-08-21`. Returns null for anything else, such as `00000000`. */
function isoDate(text: string): string | null {
  const parts = /^(19|20)(\d\d)(0[1-9]|1[0-2])([0-2]\d|3[01])$/.exec(text);
  if (!parts) return null;
  const iso = `${parts[1]}${parts[2]}-${parts[3]}-${parts[4]}`;
  return foreignDateMs(iso) === null ? null : iso;
}
