/**
 * Reads RPSL objects (RFC 2622, RFC 4012) of RIPE, APNIC, AFRINIC and LACNIC, and ARIN's similar text dump, as networks
 * and organisations.
 *
 * An empty line ends an object. `#` and `%` lines are comments, and so is what follows ` #` in a value. A line that
 * starts with a space, a tab or `+` continues the value. Attribute names are case-insensitive and in any order. Of a
 * repeated attribute the first one counts, and of the remarks the first line that names a geofeed. Departing from RPSL,
 * a second `inetnum:`, `inet6num:` or `organisation:` starts a new object (after a missing empty line, or in a spliced
 * file), so that neither is lost.
 */
import type { Registry } from "#coordinator/place/subnets/subnet";
import { SourceFileError } from "#core/errors";
import { geofeedUrlIn } from "./geofeed.ts";
import {
  countryCode,
  type HolderReference,
  type Malformed,
  type RecordReader,
  type RecordSink,
  type RegistryRecord,
  registryNamed,
} from "./record.ts";
import { readRegistryRange } from "./registry-range.ts";
import {
  decodeText,
  LineCutter,
  type LineHandler,
  tooLongReason,
  ValueDecoder,
  withoutComment,
} from "./text-decoding.ts";

/**
 * Each of these attributes starts an object of its class, wherever it occurs. `orgid` does so only as an object's first
 * attribute.
 */
const classes = ["inetnum", "inet6num", "organisation", "nethandle", "v6nethandle"];
/** Free text, kept only if it names a geofeed. */
const remarks = ["remarks", "comment"];
const wanted = new Set([
  ...classes,
  ...["orgid", "netrange", "netname", "descr", "country", "org", "source", "owner", "ownerid"],
  ...["org-name", "orgname", "nettype", "geofeed"],
  ...remarks,
]);

/** Longer names are not attributes: the longest in use has 23 letters. */
const maxNameLength = 64;
/** Longer values (many continuation lines) are cut, since no name or range needs more. */
const maxValueLength = 1024;
const shownLength = 80;
const attributeStart = /^[A-Za-z0-9*,./_-]/;
const geofeedRemark = /^[ \t]*geofeed/i;

export const openRpslReader = (file: string, sink: RecordSink): RecordReader => new RpslReader(file, sink);

class RpslReader implements RecordReader, LineHandler {
  readonly #file: string;
  readonly #sink: RecordSink;
  readonly #decoder = new ValueDecoder();
  readonly #lines = new LineCutter(this);
  readonly #values = new Map<string, string>();
  readonly #texts = new Map<string, string>();
  #isOpen = false;
  /** The attribute that defines the object, or the name of an unwanted class. */
  #class: string | null = null;
  #classLine = 0;
  #otherClass = "";
  /** The attribute that a continuation line would extend. */
  #openName: string | null = null;
  /** Remarks without a geofeed so far. A continuation line may still name one. */
  #openRemarks: string | null = null;
  #fault: Malformed | null = null;
  /** RIPE's objects end with their source, so a last object without one was truncated. */
  #sourcesSeen = 0;
  #isEnding: "inside a line" | "behind a line" | null = null;

  constructor(file: string, sink: RecordSink) {
    this.#file = file;
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    this.#lines.push(chunk);
  }

  end(): void {
    this.#isEnding = this.#lines.insideLine ? "inside a line" : "behind a line";
    this.#lines.end();
    this.#finish();
    const encoding = this.#decoder.counts;
    if (encoding !== null) this.#sink.facts({ encoding });
  }

  line(line: string, number: number): void {
    const first = line[0];
    if (first === undefined) this.#finish();
    else if (first === " " || first === "\t" || first === "+") this.#continue(line.slice(1), number);
    else if (first !== "#" && first !== "%") {
      const colon = line.indexOf(":");
      if (colon < 1 || colon > maxNameLength || !attributeStart.test(first)) this.#nameless(line, number);
      else this.#attribute(line, colon, number);
    }
  }

  longLine(beginning: string, number: number): void {
    this.#broken({ line: number, reason: tooLongReason, value: decodeText(beginning) });
  }

  #attribute(line: string, colon: number, number: number): void {
    const name = line.slice(0, colon).toLowerCase();
    this.#openName = null;
    this.#openRemarks = null;
    if (!wanted.has(name)) {
      if (!this.#isOpen) this.#otherClass = decodeText(name);
      this.#isOpen = true;
      return;
    }
    const isClass = classes.includes(name);
    if (isClass && this.#class !== null) this.#finish();
    if (isClass || (name === "orgid" && !this.#isOpen)) {
      this.#class = name;
      this.#classLine = number;
    } else if (!this.#isOpen) this.#otherClass = name;
    this.#isOpen = true;
    const value = line.slice(colon + 1);
    if (remarks.includes(name) && !geofeedRemark.test(value)) this.#openRemarks = name;
    else this.#set(name, value);
  }

  #set(name: string, value: string): void {
    if (this.#values.has(name)) return;
    this.#values.set(name, value);
    this.#openName = name;
  }

  #continue(rest: string, number: number): void {
    const name = this.#openName;
    if (name !== null) {
      this.#decoder.line = number;
      const value = this.#bare(name) ?? "";
      if (value.length < maxValueLength) this.#texts.set(name, `${value} ${this.#decoder.text(rest)}`.trim());
    } else if (this.#openRemarks !== null && geofeedRemark.test(rest)) {
      this.#set(this.#openRemarks, rest);
      this.#openRemarks = null;
    }
  }

  #nameless(line: string, number: number): void {
    const value = decodeText(line.slice(0, shownLength));
    this.#broken({ line: number, reason: "a line without an attribute name", value });
  }

  #broken(fault: Malformed): void {
    this.#isOpen = true;
    this.#openName = null;
    this.#openRemarks = null;
    this.#fault ??= fault;
  }

  #finish(): void {
    if (!this.#isOpen) return;
    this.#decoder.line = this.#classLine;
    if (this.#class === null && this.#otherClass !== "")
      this.#sink.ignore(`object class ${this.#otherClass.slice(0, 40)}`);
    else if (this.#fault !== null) this.#sink.malformed(this.#fault);
    else if (this.#class !== null) this.#object(this.#class, this.#classLine);
    this.#isOpen = false;
    this.#class = null;
    this.#otherClass = "";
    this.#openName = null;
    this.#openRemarks = null;
    this.#fault = null;
    this.#values.clear();
    if (this.#texts.size > 0) this.#texts.clear();
  }

  #text(name: string): string | null {
    const text = this.#texts.get(name);
    if (text !== undefined) return text;
    const value = this.#values.get(name);
    return value === undefined ? null : this.#decoder.text(value);
  }

  #bare(name: string): string | null {
    const text = this.#text(name);
    return text === null ? null : withoutComment(text);
  }

  #object(className: string, line: number): void {
    if (this.#values.has("source")) this.#sourcesSeen++;
    if (className === "organisation") this.#organisation("organisation", "org-name", line);
    else if (className === "orgid") this.#organisation("orgid", "orgname", line);
    else if (className === "inetnum" || className === "inet6num")
      this.#network(className, line, registryNamed(this.#bare("source") ?? ""));
    // ARIN's text dump describes another registry's networks in words.
    else if (isOfAnotherRegistry(this.#text("nettype"))) this.#sink.ignore("net type of another registry");
    else this.#network("netrange", line, "arin");
  }

  #network(rangeName: string, line: number, registry: Registry | null): void {
    const value = this.#text(rangeName) ?? "";
    const reading = readRegistryRange(value);
    if ("reason" in reading) {
      this.#sink.malformed({ line, reason: reading.reason, value });
      return;
    }
    const country = countryCode(this.#bare("country"));
    this.#emit({
      type: "network",
      source: "whois",
      line,
      registry,
      range: reading.range,
      name: this.#bare("netname") ?? "",
      country,
      holder: this.#holder(registry, country),
      geofeed: this.#geofeed(),
    });
  }

  /** Prefers the organisation's handle, then LACNIC's owner, then the description. `mnt-by` is never a name. */
  #holder(registry: Registry | null, country: string | null): HolderReference | null {
    const handle = (this.#bare("org") ?? this.#bare("ownerid") ?? this.#bare("orgid"))?.toUpperCase();
    const owner = this.#bare("owner");
    if (handle !== undefined) return { type: "handle", handle, registry, name: owner };
    const name = owner ?? this.#bare("descr");
    return name === null ? null : { type: "name", name, registry, country };
  }

  /** The attribute takes precedence over remarks (RFC 9632 section 3). */
  #geofeed(): string | null {
    for (const name of ["geofeed", ...remarks]) {
      const value = this.#bare(name);
      const url = value === null ? null : geofeedUrlIn(value);
      if (url !== null) return url;
    }
    return null;
  }

  #organisation(handleName: "organisation" | "orgid", nameName: "org-name" | "orgname", line: number): void {
    const handle = this.#bare(handleName)?.toUpperCase() ?? null;
    const name = this.#bare(nameName);
    if (handle === null || name === null) {
      const reason =
        handle === null ? "an organisation without a handle" : `an organisation without ${nameName}`;
      this.#sink.malformed({ line, reason, value: handle ?? "" });
      return;
    }
    const registry = handleName === "orgid" ? "arin" : registryNamed(this.#bare("source") ?? "");
    const country = countryCode(this.#bare("country"));
    this.#emit({ type: "organisation", line, registry, handle, name, country });
  }

  #emit(record: RegistryRecord): void {
    const lacksSource = this.#isEnding !== null && !this.#values.has("source");
    const reason = "the file is cut off: its last object has no source, as the others have";
    if (!lacksSource || this.#sourcesSeen === 0) this.#sink.record(record);
    else if (this.#isEnding === "inside a line")
      throw new SourceFileError(this.#file, this.#lines.lines, reason);
    else this.#sink.malformed({ line: record.line, reason, value: "" });
  }
}

/** ARIN's net types in words: `Allocated to RIPE NCC`, `Early Registrations, Transferred to APNIC`, `IANA …`. */
function isOfAnotherRegistry(netType: string | null): boolean {
  return netType !== null && /transferred|allocated to (?!arin)|iana/i.test(netType);
}
