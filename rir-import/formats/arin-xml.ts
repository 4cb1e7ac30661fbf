/**
 * ARIN's bulk WHOIS in XML: `<net>`, `<org>` and `<customer>` elements, record by record. A net has one or
 * more net blocks, each of which becomes one network; octets are zero-padded; the prefix length is spelled
 * `cidrLenth` or `cidrLength`. The holder is the customer where there is one (a simple reassignment), else
 * the organisation; both may name the organisation above them. A comment may name a geofeed (RFC 9632). Net types:
 * arin.net, reference/research/bulkwhois.
 */
import type { IpRange } from "#core/ip/range";
import { geofeedBytes, geofeedUrlBehind, geofeedWord } from "./geofeed.ts";
import { ipv6Value, RangeReader } from "./range-reader.ts";
import type { HolderBytes, HolderReference, NetworkRecord, RecordReader, RecordSink } from "./record.ts";
import { readRangeBetween, readRegistryRange } from "./registry-range.ts";
import { countryCode } from "./rpsl-values.ts";
import { FoundText, type TextBytes, ValueDecoder } from "./text-decoding.ts";
import { childOf, isContent, textOf, type XmlContent, type XmlPicker } from "./xml-picker.ts";
import { XmlRecordReader } from "./xml-records.ts";

export function openArinXmlReader(file: string, sink: RecordSink): RecordReader {
  const decoder = new ValueDecoder();
  const nets = new PlainNets(sink);
  sink.facts({ registry: "arin" });
  /** Of the net at hand; a record that cannot be picked has none. */
  let geofeed: string | null = null;
  const reader = new XmlRecordReader({
    file,
    rootName: "bulkwhois",
    records: ["net", "org", "customer"],
    passed: ["asn", "poc"],
    wanted: wantedElements,
    decoder,
    handler: {
      picked: (name, picker, line) => {
        if (name !== "net") return false;
        const named = picker.textFrom(geofeedWord, geofeedBytes);
        geofeed = named === null ? null : geofeedUrlBehind(named);
        const isRead = nets.read(picker, line, geofeed);
        if (isRead) geofeed = null;
        return isRead;
      },
      record: (name, value, line) => {
        readElement(sink, { name, content: isContent(value) ? value : {}, line, geofeed });
        geofeed = null;
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

const wantedElements = [
  ...["handle", "name", "orgHandle", "customerHandle", "parentOrgHandle"],
  ...["netBlocks", "netBlock", "startAddress", "endAddress", "cidrLength", "cidrLenth", "type"],
  ...["iso3166-1", "code2"],
];

/** Held by ARIN or through it: (re)allocated, (re)assigned, direct, early, and ARIN's own blocks. */
const ownNetTypes = new Set(["A", "S", "DA", "DS", "AV", "AR"]);
/** Allocated to, transferred to or early registrations of another registry, and IANA's. */
const otherNetTypes = new Set(["AF", "AP", "FX", "LN", "LX", "PV", "PX", "RN", "RV", "RX", "RD", "IR", "IU"]);

interface Element {
  readonly name: string;
  readonly content: XmlContent;
  readonly line: number;
  readonly geofeed: string | null;
}

function readElement(sink: RecordSink, element: Element): void {
  const { name, content, line } = element;
  if (name === "net") readNet(sink, element);
  else readOrganisation(sink, content, line);
}

/** An organisation, or a customer of one; `parentOrgHandle` names the one above. */
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

/** From the addresses; the prefix length only where an end is missing. The reason in words when it is none. */
function rangeOfBlock(block: XmlContent): IpRange | string {
  const first = textOf(block, "startAddress");
  const last = textOf(block, "endAddress");
  if (first === null) return "a net block without a start address";
  const length = textOf(block, "cidrLength") ?? textOf(block, "cidrLenth");
  if (last === null && length === null) return "a net block without an end address";
  const reading = last !== null ? readRangeBetween(first, last) : readRegistryRange(`${first}/${length}`);
  return "range" in reading ? reading.range : reading.reason;
}

/** Net blocks in `<netBlocks>`; older files have them in the net itself, or one pair of addresses only. */
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

// Nets as nearly all are, straight from their bytes: one net block with both addresses, names and handles in plain
// ASCII. Every other is left to what stands above, which gives the same for these.

const wanted = (name: string) => wantedElements.indexOf(name);
const handleElement = wanted("handle");
const nameElement = wanted("name");
const customerElement = wanted("customerHandle");
const orgElement = wanted("orgHandle");
const blocksElement = wanted("netBlocks");
const blockElement = wanted("netBlock");
const typeElement = wanted("type");
const firstElement = wanted("startAddress");
const lastElement = wanted("endAddress");

class PlainNets {
  readonly #sink: RecordSink;
  readonly #net = new PlainNet();
  readonly #ranges = new RangeReader();
  readonly #text = new FoundText();

  constructor(sink: RecordSink) {
    this.#sink = sink;
  }

  /** False for a net that is not of this kind; then nothing of it was handed on. */
  read(picker: XmlPicker, line: number, geofeed: string | null): boolean {
    const net = this.#net;
    const block = onlyBlock(picker);
    if (block < 0 || !this.#isOwnType(picker, block) || !this.#readRange(picker, block)) return false;
    if (!this.#readText(picker, nameElement, net.nameBytes, false)) {
      if (picker.child(picker.record, nameElement) >= 0) return false;
      if (!this.#readText(picker, handleElement, net.nameBytes, false)) return false;
    }
    const customer = picker.child(picker.record, customerElement);
    const holderElement = customer >= 0 ? customerElement : orgElement;
    if (!this.#readText(picker, holderElement, net.holderBytes.text, true)) return false;
    net.line = line;
    net.geofeed = geofeed;
    this.#sink.record(net);
    return true;
  }

  #readText(picker: XmlPicker, name: number, into: FoundText, inCapitals: boolean): boolean {
    const element = picker.child(picker.record, name);
    if (element < 0 || !picker.plainText(element, into)) return false;
    return !inCapitals || !hasSmallLetters(into);
  }

  /** Types of one or two letters, in capitals. */
  #isOwnType(picker: XmlPicker, block: number): boolean {
    const type = picker.child(block, typeElement);
    if (type < 0) return true;
    const text = this.#text;
    if (!picker.plainText(type, text) || text.end - text.start > 2) return false;
    const second = text.end - text.start === 2 ? (text.bytes[text.start + 1] as number) : 0;
    return ownTypeCodes.has(((text.bytes[text.start] as number) << 8) | second);
  }

  #readRange(picker: XmlPicker, block: number): boolean {
    const start = picker.child(block, firstElement);
    const end = picker.child(block, lastElement);
    const { first: from, last: to } = this.#net;
    if (start < 0 || end < 0 || !picker.plainText(start, from) || !picker.plainText(end, to)) return false;
    return this.#readIpv4(from, to) || this.#readIpv6(from, to);
  }

  #readIpv4(from: FoundText, to: FoundText): boolean {
    const ranges = this.#ranges;
    if (!ranges.readIpv4Address(from.bytes, from.start, from.end)) return false;
    const { first } = ranges;
    if (!ranges.readIpv4Address(to.bytes, to.start, to.end) || ranges.first < first) return false;
    ranges.last = ranges.first;
    ranges.first = first;
    this.#net.setRange(ranges.ipv4, null);
    return true;
  }

  #readIpv6(from: FoundText, to: FoundText): boolean {
    const ranges = this.#ranges;
    const { words } = this.#net;
    if (!ranges.readIpv6Block(from.bytes, from.start, from.end, 128)) return false;
    words.set(ranges.words.subarray(0, 4), 0);
    if (!ranges.readIpv6Block(to.bytes, to.start, to.end, 128)) return false;
    words.set(ranges.words.subarray(0, 4), 4);
    if (isBehind(words)) return false;
    this.#net.setRange(null, words);
    return true;
  }
}

/** The net's only block, in `<netBlocks>`; −1 where it has another number of them, or they stand elsewhere. */
function onlyBlock(picker: XmlPicker): number {
  const wrapper = picker.child(picker.record, blocksElement);
  if (wrapper < 0 || picker.children(picker.record, blocksElement) > 1) return -1;
  return picker.children(wrapper, blockElement) === 1 ? picker.child(wrapper, blockElement) : -1;
}

const ownTypeCodes = new Set(
  [...ownNetTypes].map((type) => (type.charCodeAt(0) << 8) | (type.length > 1 ? type.charCodeAt(1) : 0)),
);

function hasSmallLetters({ bytes, start, end }: TextBytes): boolean {
  for (let at = start; at < end; at += 1)
    if ((bytes[at] as number) >= 0x61 && (bytes[at] as number) <= 0x7a) return true;
  return false;
}

/** The last address, from the fifth word on, is before the first. */
function isBehind(words: Uint32Array): boolean {
  for (let word = 0; word < 4; word += 1)
    if (words[word] !== words[word + 4]) return (words[word] as number) > (words[word + 4] as number);
  return false;
}

/** There is one of these per reader, as in rpsl.ts. */
class PlainNet implements NetworkRecord {
  readonly type = "network";
  readonly source = "whois";
  readonly registry = "arin";
  readonly country = null;
  line = 0;
  geofeed: string | null = null;
  ipv6Words: Uint32Array | null = null;
  readonly words = new Uint32Array(8);
  readonly first = new FoundText();
  readonly last = new FoundText();
  readonly nameBytes = new FoundText();
  readonly holderBytes = new PlainHolder();
  #range: IpRange | null = null;

  setRange(range: IpRange | null, words: Uint32Array | null): void {
    this.#range = range;
    this.ipv6Words = words;
  }

  get range(): IpRange {
    this.#range ??= { family: 6, first: ipv6Value(this.words, 0), last: ipv6Value(this.words, 4) };
    return this.#range;
  }

  get name(): string {
    return textIn(this.nameBytes);
  }

  get holder(): HolderReference {
    return { type: "handle", handle: textIn(this.holderBytes.text), registry: "arin", name: null };
  }
}

class PlainHolder implements HolderBytes {
  readonly type = "handle";
  readonly registry = "arin";
  readonly country = null;
  readonly ownName = null;
  readonly text = new FoundText();
}

const textIn = ({ bytes, start, end }: FoundText) => bytes.toString("latin1", start, end);
