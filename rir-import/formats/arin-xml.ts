/**
 * ARIN's bulk WHOIS in XML: `<net>`, `<org>` and `<customer>` elements, record by record. A net has one or
 * more net blocks, each of which becomes one network; octets are zero-padded; the prefix length is spelled
 * `cidrLenth` or `cidrLength`. The holder is the customer where there is one (a simple reassignment), else
 * the organisation. Net types: arin.net, reference/research/bulkwhois.
 */
import type { IpRange } from "#core/ip/range";
import { countryCode } from "./country.ts";
import type { HolderReference, RecordReader, RecordSink } from "./record.ts";
import { readRangeBetween, readRegistryRange } from "./registry-range.ts";
import { childOf, parseXmlRecord, textOf, XmlRecordReader } from "./xml-records.ts";

type Content = Readonly<Record<string, unknown>>;

export function openArinXmlReader(file: string, sink: RecordSink): RecordReader {
  sink.facts({ registry: "arin" });
  return new XmlRecordReader({
    file,
    rootName: "bulkwhois",
    names: ["net", "org", "customer", "asn", "poc"],
    handler: {
      element: (name, xml, line) => readElement(sink, { name, xml, line }),
      tooLong: (name, line) =>
        sink.malformed({ line, reason: `a <${name}> element larger than 1 MiB`, value: name }),
    },
  });
}

/** Held by ARIN or through it: (re)allocated, (re)assigned, direct, early, and ARIN's own blocks. */
const ownNetTypes = new Set(["A", "S", "DA", "DS", "AV", "AR"]);
/** Allocated to, transferred to or early registrations of another registry, and IANA's. */
const otherNetTypes = new Set(["AF", "AP", "FX", "LN", "LX", "PV", "PX", "RN", "RV", "RX", "RD", "IR", "IU"]);

interface Element {
  readonly name: string;
  readonly xml: string;
  readonly line: number;
}

function readElement(sink: RecordSink, element: Element): void {
  const { name, xml, line } = element;
  if (name === "asn" || name === "poc") {
    sink.ignore(`element <${name}>`);
    return;
  }
  const content = parseXmlRecord(name, xml);
  if (content === null) sink.malformed({ line, reason: `a <${name}> that is not well formed`, value: xml });
  else if (name === "net") readNet(sink, content, line);
  else readOrganisation(sink, content, line);
}

function readOrganisation(sink: RecordSink, content: Content, line: number): void {
  const handle = textOf(content, "handle");
  const name = textOf(content, "name");
  if (handle === null || name === null) {
    const reason = handle === null ? "an organisation without a handle" : "an organisation without a name";
    sink.malformed({ line, reason, value: handle ?? "" });
    return;
  }
  const codes = childOf(content, "iso3166-1");
  const country = countryCode(codes && textOf(codes, "code2"));
  sink.record({ type: "organisation", line, registry: "arin", handle: handle.toUpperCase(), name, country });
}

function readNet(sink: RecordSink, content: Content, line: number): void {
  const blocks = netBlocksOf(content);
  const handle = textOf(content, "handle") ?? "";
  if (blocks.length === 0) sink.malformed({ line, reason: "a net without net blocks", value: handle });
  const net = { line, name: textOf(content, "name") ?? handle, holder: holderOfNet(content) };
  for (const block of blocks) {
    const type = textOf(block, "type")?.toUpperCase() ?? "";
    if (otherNetTypes.has(type)) sink.ignore("net type of another registry");
    else if (type !== "" && !ownNetTypes.has(type)) sink.ignore("an unknown net type");
    else readBlock(sink, block, net);
  }
}

interface Net {
  readonly line: number;
  readonly name: string;
  readonly holder: HolderReference | null;
}

function readBlock(sink: RecordSink, block: Content, net: Net): void {
  const range = rangeOfBlock(block);
  if (typeof range !== "string") {
    sink.record({ type: "network", source: "whois", range, registry: "arin", country: null, ...net });
    return;
  }
  const value = [textOf(block, "startAddress"), textOf(block, "endAddress")].join(" - ");
  sink.malformed({ line: net.line, reason: range, value });
}

/** From the addresses; the prefix length only where an end is missing. The reason in words when it is none. */
function rangeOfBlock(block: Content): IpRange | string {
  const first = textOf(block, "startAddress");
  const last = textOf(block, "endAddress");
  if (first === null) return "a net block without a start address";
  const length = textOf(block, "cidrLength") ?? textOf(block, "cidrLenth");
  if (last === null && length === null) return "a net block without an end address";
  const reading = last !== null ? readRangeBetween(first, last) : readRegistryRange(`${first}/${length}`);
  return "range" in reading ? reading.range : reading.reason;
}

/** Net blocks in `<netBlocks>`; older files have them in the net itself, or one pair of addresses only. */
function netBlocksOf(content: Content): readonly Content[] {
  const wrapper = childOf(content, "netBlocks");
  const { netBlock: blocks } = wrapper ?? content;
  const list: readonly unknown[] = Array.isArray(blocks) ? blocks : blocks === undefined ? [] : [blocks];
  const contents = list.filter((block): block is Content => typeof block === "object" && block !== null);
  return contents.length > 0 || textOf(content, "startAddress") === null ? contents : [content];
}

function holderOfNet(content: Content): HolderReference | null {
  const handle = textOf(content, "customerHandle") ?? textOf(content, "orgHandle");
  return handle === null
    ? null
    : { type: "handle", handle: handle.toUpperCase(), registry: "arin", name: null };
}
