/**
 * Reads ARIN's bulk WHOIS in XML: `<net>`, `<org>` and `<customer>` elements. Each of a net's blocks becomes one
 * network; octets are zero-padded; the prefix length is spelled `cidrLenth` or `cidrLength`. The holder is the customer
 * if there is one (a simple reassignment), else the organisation; both may name a parent organisation. A comment may
 * name a geofeed (RFC 9632). Net types: arin.net, reference/research/bulkwhois.
 */
import type { IpRange } from "#core/ip/range";
import { geofeedUrlAmong } from "./geofeed.ts";
import { countryCode, type HolderReference, type RecordReader, type RecordSink } from "./record.ts";
import { readRangeBetween, readRegistryRange } from "./registry-range.ts";
import { ValueDecoder } from "./text-decoding.ts";
import { childOf, isContent, textOf, type XmlContent, XmlRecordReader } from "./xml-records.ts";

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

/** Held by ARIN or through it: (re)allocated, (re)assigned, direct, early, and ARIN's own blocks. */
const ownNetTypes = new Set(["A", "S", "DA", "DS", "AV", "AR"]);
/** Of another registry (allocated, transferred, early registrations), or IANA's. */
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

/** Uses the addresses, and the prefix length only for a missing end. Returns a reason for an invalid range. */
function rangeOfBlock(block: XmlContent): IpRange | string {
  const first = textOf(block, "startAddress");
  const last = textOf(block, "endAddress");
  if (first === null) return "a net block without a start address";
  const length = textOf(block, "cidrLength") ?? textOf(block, "cidrLenth");
  if (last === null && length === null) return "a net block without an end address";
  const reading = last !== null ? readRangeBetween(first, last) : readRegistryRange(`${first}/${length}`);
  return "range" in reading ? reading.range : reading.reason;
}

/** Net blocks are in `<netBlocks>`; older files have them in the net itself, or a single pair of addresses. */
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
