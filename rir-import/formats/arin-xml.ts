/**
 * Reads ARIN's bulk WHOIS in XML: `<net>`, `<org>` and `<customer>` elements. Each block of a net becomes one network.
 * Octets are zero-padded, and the prefix length is spelled `cidrLenth` or `cidrLength`. The holder is the customer if
 * there is one (a simple reassignment), else the organisation; either may name a parent organisation. A comment may
 * name a geofeed (RFC 9632). Net types: arin.net, reference/research/bulkwhois.
 */

import { XMLParser } from "fast-xml-parser";
import { SourceFileError } from "#core/errors";
import type { IpRange } from "#core/ip/range";
import { geofeedUrlAmong } from "./geofeed.ts";
import {
  countryCode,
  type HolderReference,
  type Malformed,
  type RecordReader,
  type RecordSink,
} from "./record.ts";
import { readRangeBetween, readRegistryRange } from "./registry-range.ts";
import { decodeText, maxTextLength, ValueDecoder } from "./text-decoding.ts";

export function openArinXmlReader(file: string, sink: RecordSink): RecordReader {
  const decoder = new ValueDecoder();
  sink.facts({ registry: "arin" });
  const reader = new XmlRecordReader({
    file,
    rootName: "bulkwhois",
    records: ["net", "org", "customer"],
    passed: ["asn", "poc"],
    decoder,
    handler: {
      record: (name, value, { line, xml }) => {
        const content = isContent(value) ? value : {};
        if (name === "net") readNet(sink, { content, line, geofeed: geofeedUrlAmong(xml) });
        else readOrganisation(sink, content, line);
      },
      passed: (name) => sink.ignore(`element <${name}>`),
      malformed: (problem) => sink.malformed(problem),
    },
  });
  return {
    push: (chunk) => reader.push(chunk),
    end: () => {
      reader.end();
      const encoding = decoder.counts;
      if (encoding !== null) sink.facts({ encoding });
    },
  };
}

/** Net types held by ARIN or through it: (re)allocated, (re)assigned, direct, early, and ARIN's own blocks. */
const ownNetTypes = new Set(["A", "S", "DA", "DS", "AV", "AR"]);
/** Net types of another registry (allocated, transferred, early registrations) or of IANA. */
const otherNetTypes = new Set(["AF", "AP", "FX", "LN", "LX", "PV", "PX", "RN", "RV", "RX", "RD", "IR", "IU"]);

interface Element {
  readonly content: XmlContent;
  readonly line: number;
  readonly geofeed: string | null;
}

function readOrganisation(sink: RecordSink, content: XmlContent, line: number): void {
  const handle = textOf(content, "handle")?.toUpperCase() ?? null;
  const name = textOf(content, "name");
  if (handle === null || name === null) {
    const reason = handle === null ? "an organisation without a handle" : "an organisation without a name";
    sink.malformed({ line, reason, value: handle ?? "" });
    return;
  }
  const codes = childOf(content, "iso3166-1");
  const country = countryCode(codes && textOf(codes, "code2"));
  const parentHandle = textOf(content, "parentOrgHandle")?.toUpperCase();
  const parent = parentHandle === undefined ? null : { parentHandle };
  sink.record({ type: "organisation", line, registry: "arin", handle, name, country, ...parent });
}

function readNet(sink: RecordSink, { content, line, geofeed }: Element): void {
  const blocks = netBlocksOf(content);
  const handle = textOf(content, "handle") ?? "";
  if (blocks.length === 0) sink.malformed({ line, reason: "a net without net blocks", value: handle });
  const net = { line, geofeed, name: textOf(content, "name") ?? handle, holder: holderOfNet(content) };
  for (const block of blocks) {
    const type = textOf(block, "type")?.toUpperCase() ?? "";
    if (otherNetTypes.has(type)) sink.ignore("net type of another registry");
    else if (type !== "" && !ownNetTypes.has(type)) sink.ignore("an unknown net type");
    else readBlock(sink, block, net);
  }
}

interface Net {
  readonly line: number;
  readonly geofeed: string | null;
  readonly name: string;
  readonly holder: HolderReference | null;
}

function readBlock(sink: RecordSink, block: XmlContent, net: Net): void {
  const range = rangeOfBlock(block);
  if (typeof range !== "string") {
    sink.record({ type: "network", source: "whois", range, registry: "arin", country: null, ...net });
    return;
  }
  const value = [textOf(block, "startAddress"), textOf(block, "endAddress")].join(" - ");
  sink.malformed({ line: net.line, reason: range, value });
}

/** Uses the addresses. The prefix length only replaces a missing end. Returns a reason for an invalid range. */
function rangeOfBlock(block: XmlContent): IpRange | string {
  const first = textOf(block, "startAddress");
  const last = textOf(block, "endAddress");
  if (first === null) return "a net block without a start address";
  const length = textOf(block, "cidrLength") ?? textOf(block, "cidrLenth");
  if (last === null && length === null) return "a net block without an end address";
  const reading = last !== null ? readRangeBetween(first, last) : readRegistryRange(`${first}/${length}`);
  return "range" in reading ? reading.range : reading.reason;
}

/** Net blocks are in `<netBlocks>`. Older files have them in the net itself, or have a single pair of addresses. */
function netBlocksOf(content: XmlContent): readonly XmlContent[] {
  const wrapper = childOf(content, "netBlocks");
  const { netBlock: blocks } = wrapper ?? content;
  const list: readonly unknown[] = Array.isArray(blocks) ? blocks : blocks === undefined ? [] : [blocks];
  const contents = list.filter(isContent);
  return contents.length > 0 || textOf(content, "startAddress") === null ? contents : [content];
}

function holderOfNet(content: XmlContent): HolderReference | null {
  const handle = textOf(content, "customerHandle") ?? textOf(content, "orgHandle");
  return handle === null
    ? null
    : { type: "handle", handle: handle.toUpperCase(), registry: "arin", name: null };
}

// Finds elements by name in an XML stream of any size and parses them one by one with fast-xml-parser, which needed 2
// GB for a whole file of 191 MB. Each record has its first line. Comments, CDATA sections, processing instructions and
// overlong records are skipped. Document type definitions are refused, because no registry uses them and their entities
// could expand without limit (billion laughs).

/** No known record exceeds 100 KB (a net with thousands of comment lines). */
const maxRecordBytes = 1_048_576;

interface XmlOptions {
  readonly file: string;
  readonly rootName: string;
  readonly records: readonly string[];
  readonly passed: readonly string[];
  readonly decoder: ValueDecoder;
  readonly handler: {
    /** `value` is the record's content, or its text if it has no children. */
    record(name: string, value: unknown, at: { readonly line: number; readonly xml: string }): void;
    passed(name: string): void;
    malformed(problem: Malformed): void;
  };
}

export class XmlRecordReader implements RecordReader {
  readonly #options: XmlOptions;
  #text = "";
  /** Everything before this position is processed. */
  #at = 0;
  #line = 1;
  /** The end of the comment, CDATA section, instruction or overlong element being skipped. */
  #skipTo: string | null = null;
  /** The element whose end is being searched for, and how far the search got. */
  #open: { readonly name: string; searched: number } | null = null;
  #sawRootEnd = false;

  constructor(options: XmlOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    this.#text = this.#text.slice(this.#at) + chunk.toString("latin1");
    if (this.#open !== null) this.#open.searched -= this.#at;
    this.#at = 0;
    while (this.#step()) {
      // Each step consumes text or asks for more.
    }
  }

  end(): void {
    if (this.#open !== null || this.#skipTo !== null || !this.#sawRootEnd) {
      throw this.#error(`the XML ends early: no </${this.#options.rootName}>`);
    }
  }

  #step(): boolean {
    if (this.#skipTo !== null) return this.#stepSkip(this.#skipTo);
    if (this.#open !== null) return this.#stepOpen(this.#open);
    const tag = this.#text.indexOf("<", this.#at);
    this.#moveTo(tag < 0 ? this.#text.length : tag);
    return tag >= 0 && this.#stepTag();
  }

  #stepTag(): boolean {
    const { records, passed, rootName } = this.#options;
    const at = this.#at;
    if (isTag(this.#text, at, `</${rootName}`)) this.#sawRootEnd = true;
    else if (this.#text.length - at < longestMarker) return false;
    const section = this.#sectionAt(at);
    if (section !== null) {
      this.#skipTo = section.closing;
      this.#moveTo(at + section.opening.length);
      return true;
    }
    const isHere = (name: string) => isTag(this.#text, at, `<${name}`);
    const name = records.find(isHere) ?? passed.find(isHere);
    if (name === undefined) this.#moveTo(at + 1);
    else this.#open = { name, searched: at + 1 };
    return true;
  }

  /** Continues the search for the end tag where it stopped. */
  #stepOpen(open: { readonly name: string; searched: number }): boolean {
    const text = this.#text;
    const endTag = `</${open.name}`;
    for (let at = text.indexOf("<", open.searched); at >= 0; at = text.indexOf("<", open.searched)) {
      if (isTag(text, at, endTag)) {
        const close = text.indexOf(">", at);
        return close < 0 ? this.#needsMore(open, at) : this.#finish(open.name, close + 1);
      }
      if (at + Math.max(longestMarker, endTag.length + 1) > text.length) return this.#needsMore(open, at);
      open.searched = at + 1;
      const section = this.#sectionAt(at);
      if (section === null) continue;
      const closing = text.indexOf(section.closing, at + section.opening.length);
      if (closing < 0) return this.#needsMore(open, at);
      open.searched = closing + section.closing.length;
    }
    return this.#needsMore(open, text.length);
  }

  #needsMore(open: { readonly name: string; searched: number }, searched: number): boolean {
    open.searched = searched;
    if (this.#text.length - this.#at <= maxRecordBytes) return false;
    this.#tooLong(open.name);
    this.#open = null;
    this.#skipTo = `</${open.name}>`;
    return true;
  }

  #finish(name: string, end: number): boolean {
    this.#open = null;
    if (end - this.#at > maxRecordBytes) this.#tooLong(name);
    else if (this.#options.passed.includes(name)) this.#options.handler.passed(name);
    else this.#read(name, this.#text.slice(this.#at, end));
    this.#moveTo(end);
    return true;
  }

  #read(name: string, bytes: string): void {
    const { handler, decoder } = this.#options;
    const line = this.#line;
    decoder.line = line;
    const xml = decoder.raw(bytes);
    const value = parseXmlRecord(name, xml);
    if (value !== null) handler.record(name, value, { line, xml });
    else {
      const shown = decodeText(bytes.slice(0, shownLength));
      handler.malformed({ line, reason: `a <${name}> that is not well formed`, value: shown });
    }
  }

  #tooLong(name: string): void {
    const reason = `a <${name}> element larger than 1 MiB`;
    this.#options.handler.malformed({ line: this.#line, reason, value: name });
  }

  #stepSkip(closing: string): boolean {
    const end = this.#text.indexOf(closing, this.#at);
    if (end < 0) {
      this.#moveTo(Math.max(this.#at, this.#text.length - closing.length + 1));
      return false;
    }
    this.#moveTo(end + closing.length);
    this.#skipTo = null;
    return true;
  }

  #sectionAt(at: number): (typeof sections)[number] | null {
    if (this.#text[at + 1] !== "!" && this.#text[at + 1] !== "?") return null;
    const section = sections.find(({ opening }) => this.#text.startsWith(opening, at));
    if (section === undefined) throw this.#error("a document type definition is refused");
    return section;
  }

  #moveTo(to: number): void {
    const passed = this.#text.slice(this.#at, to);
    for (let at = passed.indexOf("\n"); at >= 0; at = passed.indexOf("\n", at + 1)) this.#line++;
    this.#at = to;
  }

  #error(reason: string): SourceFileError {
    return new SourceFileError(this.#options.file, this.#line, reason);
  }
}

function isTag(text: string, at: number, tag: string): boolean {
  return text.startsWith(tag, at) && /[>/\s]/.test(text[at + tag.length] ?? "");
}

const sections = [
  { opening: "<!--", closing: "-->" },
  { opening: "<![CDATA[", closing: "]]>" },
  { opening: "<?", closing: "?>" },
] as const;
const longestMarker = 16;
const shownLength = 200;

// Reads texts from the nested values that fast-xml-parser returns for an XML record. Entities are decoded only when a
// text is read.

export type XmlContent = { readonly [name: string]: unknown };

/** Parses all records without attributes, type guessing or entities beyond XML's five. */
const parser = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  processEntities: false,
  htmlEntities: false,
  removeNSPrefix: true,
  trimValues: true,
});

function parseXmlRecord(name: string, xml: string): unknown {
  try {
    return (parser.parse(xml, true) as XmlContent)[name] ?? null;
  } catch {
    return null;
  }
}

export function isContent(value: unknown): value is XmlContent {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const firstOf = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value);

/** Returns a child element's decoded text, or null when it is absent, empty or not plain text. */
export function textOf(content: XmlContent, name: string): string | null {
  const value = firstOf(content[name]);
  return typeof value === "string" ? plainText(value) : null;
}

export function childOf(content: XmlContent, name: string): XmlContent | null {
  const value = firstOf(content[name]);
  return isContent(value) ? value : null;
}

/** Decodes entities, replaces control characters and limits the length. Returns null when the text is empty. */
export function plainText(written: string): string | null {
  const text = decodeEntities(written)
    .replace(/\p{Cc}+/gu, " ")
    .trim();
  return text === "" ? null : text.slice(0, maxTextLength);
}

const namedEntities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Decodes XML's five entities and character references. Anything else is left as written. */
function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/g,
    (whole, hex, decimal, name) => {
      if (name) return namedEntities[name as string] ?? whole;
      const code = hex ? Number.parseInt(hex as string, 16) : Number(decimal);
      return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
        ? String.fromCodePoint(code)
        : "";
    },
  );
}
