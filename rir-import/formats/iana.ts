/**
 * IANA's registries of IPv4 address space and IPv6 unicast assignments, XML: the top level of the tree,
 * and the last word on which registry is responsible where no statistics are at hand. Reserved blocks,
 * multicast and IANA's own are left out; a block whose designation is a company (legacy /8s) has it as
 * its holder.
 */

import type { Registry } from "#coordinator/subnets/subnet";
import type { IpRange } from "#core/ip/range";
import { type HolderReference, type RecordReader, type RecordSink, registryNamed } from "./record.ts";
import { readRegistryRange } from "./registry-range.ts";
import { ValueDecoder } from "./text-decoding.ts";
import { isContent, plainText, textOf, type XmlContent } from "./xml-content.ts";
import { XmlRecordReader } from "./xml-records.ts";

export function openIanaReader(file: string, sink: RecordSink): RecordReader {
  sink.facts({ registry: "iana" });
  return new XmlRecordReader({
    file,
    rootName: "registry",
    records: ["record", "updated"],
    passed: [],
    wanted: ["prefix", "status", "designation", "description", "whois"],
    decoder: new ValueDecoder(),
    handler: {
      record: (name, value, line) =>
        name === "updated" ? readUpdated(sink, value) : readRecord(sink, isContent(value) ? value : {}, line),
      passed: () => {},
      malformed: (problem) => sink.malformed(problem),
    },
  });
}

function readUpdated(sink: RecordSink, value: unknown): void {
  const fileDate =
    typeof value === "string" ? /\d{4}-\d\d-\d\d/.exec(plainText(value) ?? "")?.[0] : undefined;
  if (fileDate) sink.facts({ fileDate });
}

function readRecord(sink: RecordSink, content: XmlContent, line: number): void {
  const prefix = textOf(content, "prefix") ?? "";
  const reading = readRegistryRange(prefix);
  if ("reason" in reading) sink.malformed({ line, reason: reading.reason, value: prefix });
  else readBlock(sink, content, { line, range: reading.range });
}

function readBlock(
  sink: RecordSink,
  content: XmlContent,
  at: { readonly line: number; readonly range: IpRange },
): void {
  const status = (textOf(content, "status") ?? "").toUpperCase();
  const name = textOf(content, "designation") ?? textOf(content, "description") ?? "";
  const registry = registryOf(textOf(content, "whois"), name);
  if (status !== "ALLOCATED" && status !== "LEGACY") {
    sink.ignore(`status ${status.toLowerCase().slice(0, 20)}`);
  } else if (registry === null) {
    sink.ignore("not given to a registry");
  } else {
    const holder = holderOf(name);
    sink.record({ type: "network", source: "iana", registry, name, country: null, holder, ...at });
  }
}

/** From the WHOIS server's name (`whois.ripe.net`), else from the designation. IANA's own blocks: null. */
function registryOf(whois: string | null, designation: string): Registry | null {
  const host = /^whois\.([a-z]+)\.(?:net|org)$/i.exec(whois ?? "")?.[1];
  const registry = host ? registryNamed(host) : registryNamed(designation.replace(/^Administered by /i, ""));
  return registry === "iana" ? null : registry;
}

function holderOf(designation: string): HolderReference | null {
  if (designation === "" || registryNamed(designation) !== null) return null;
  if (/^(Administered by|IANA|Multicast|Future use|6to4|Documentation|Reserved)/i.test(designation))
    return null;
  return { type: "name", name: designation, registry: "iana", country: null };
}
