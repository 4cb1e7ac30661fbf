/**
 * RPSL objects (RFC 2622, RFC 4012) as RIPE, APNIC, AFRINIC and LACNIC publish them, and ARIN's text dump,
 * which has the same shape with other attribute names. rpsl-scanner.ts finds the objects; here they become
 * networks and organisations. ` #` inside a value starts a comment.
 */
import { SourceFileError } from "#core/errors";
import { BlockCutter } from "./line-blocks.ts";
import { RangeReader } from "./range-reader.ts";
import type { RecordReader, RecordSink } from "./record.ts";
import { readRegistryRange } from "./registry-range.ts";
import { slots } from "./rpsl-attributes.ts";
import { RpslNetwork } from "./rpsl-network.ts";
import { RpslScanner } from "./rpsl-scanner.ts";
import type { RpslValues } from "./rpsl-values.ts";
import { ValueDecoder } from "./text-decoding.ts";

export function openRpslReader(file: string, sink: RecordSink): RecordReader {
  return new RpslReader(file, sink);
}

class RpslReader implements RecordReader {
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

  push(chunk: Buffer): void {
    this.#cutter.push(chunk);
  }

  /** Throws when the file ends inside a line and its last object is not whole: a broken download. */
  end(): void {
    this.#isEnding = this.#cutter.insideLine ? "inside a line" : "behind a line";
    this.#cutter.end();
    this.#scanner.end();
    const encoding = this.#decoder.counts;
    if (encoding !== null) this.#sink.facts({ encoding });
  }

  #object(slot: number, line: number): void {
    if (this.#values.has(slots.source)) this.#sourcesSeen++;
    else if (this.#isEnding !== null && this.#sourcesSeen > 0) {
      this.#cutOff(line);
      return;
    }
    if (slot === slots.organisation) this.#organisation(slot, "org-name", line);
    else if (slot === slots.orgid) this.#organisation(slot, "orgname", line);
    else if (slot === slots.nethandle || slot === slots.v6nethandle) this.#arinNetwork(line);
    else this.#networkAt(slot, line, this.#values.registry());
  }

  #cutOff(line: number): void {
    const reason = "the file is cut off: its last object has no source, as the others have";
    if (this.#isEnding === "inside a line")
      throw new SourceFileError(this.#file, this.#scanner.lines, reason);
    this.#sink.malformed({ line, reason, value: "" });
  }

  /** ARIN's text says in words what is another registry's. */
  #arinNetwork(line: number): void {
    if (!isOfAnotherRegistry(this.#values.text(slots.nettype))) this.#networkAt(slots.netrange, line, "arin");
    else this.#sink.ignore("net type of another registry");
  }

  /** LACNIC has IPv6 under `inetnum:` too, so the value says what it is. */
  #networkAt(slot: number, line: number, registry: RpslNetwork["registry"]): void {
    const network = this.#network;
    if (this.#values.readIpv4(slot, this.#ranges)) network.begin(line, registry, this.#ranges.ipv4);
    else if (this.#values.readIpv6(slot, this.#ranges)) {
      network.begin(line, registry, this.#ipv6Range);
      network.ipv6Words = this.#ranges.words;
    } else {
      const value = this.#values.text(slot) ?? "";
      const reading = readRegistryRange(value);
      if ("reason" in reading) {
        this.#sink.malformed({ line, reason: reading.reason, value });
        return;
      }
      network.begin(line, registry, reading.range);
    }
    this.#sink.record(network);
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
    this.#sink.record({ type: "organisation", line, registry, handle, name, country: values.country() });
  }
}

/** ARIN's net types in words: `Allocated to RIPE NCC`, `Early Registrations, Transferred to APNIC`, `IANA …`. */
function isOfAnotherRegistry(netType: string | null): boolean {
  return netType !== null && /transferred|allocated to (?!arin)|iana/i.test(netType);
}
