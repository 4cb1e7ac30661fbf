/**
 * Statistics of delegated resources, plain and extended, as the registries and the NRO publish them:
 * `registry|cc|type|start|value|date|status[|opaque-id[|source]]`, 7, 8 or 9 fields, any version line.
 * IPv4 is a start and a count of addresses that need not be a power of two nor aligned; IPv6 a start and
 * a prefix length. An opaque-id says which records have one holder, within this file only.
 * IANA's own file has the same shape, with the receiving registry in place of the status.
 */
import { SourceFileError } from "#core/errors";
import { DelegatedLines } from "./delegated-lines.ts";
import { DelegatedNetwork } from "./delegated-network.ts";
import { BlockCutter } from "./line-blocks.ts";
import { type RecordReader, type RecordSink, registryNamed } from "./record.ts";
import { RememberedBytes } from "./remembered-bytes.ts";
import { ValueDecoder } from "./text-decoding.ts";

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
  const time = Date.parse(`${iso}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(iso) ? iso : null;
}
