/**
 * Pieces of the texts that registries publish: addresses as each writes them, IANA's XML, ARIN's net blocks, attributes of
 * RPSL objects, and lines of the extended statistics (RIR statistics exchange format, version 2.3).
 */

const octets = Array.from({ length: 256 }, (_, octet) => String(octet));
const paddedOctets = octets.map((octet) => octet.padStart(3, "0"));

export function ipv4Text(address: number): string {
  return `${octets[address >>> 24]}.${octets[(address >>> 16) & 255]}.${octets[(address >>> 8) & 255]}.${octets[address & 255]}`;
}

/** `008.000.144.003`. */
export function paddedIpv4Text(address: number): string {
  return `${paddedOctets[address >>> 24]}.${paddedOctets[(address >>> 16) & 255]}.${paddedOctets[(address >>> 8) & 255]}.${paddedOctets[address & 255]}`;
}

/** `200.3.12/22`: trailing zero octets are omitted, but at least one remains. */
export function shortBlockText(address: number, prefixLength: number): string {
  if (prefixLength > 24) return `${ipv4Text(address)}/${prefixLength}`;
  let shown = octets[address >>> 24] as string;
  if (prefixLength > 8) shown += `.${octets[(address >>> 16) & 255]}`;
  if (prefixLength > 16) shown += `.${octets[(address >>> 8) & 255]}`;
  return `${shown}/${prefixLength}`;
}

export function element(name: string, text: string): string {
  return `<${name}>${escapeXml(text)}</${name}>`;
}

export function escapeXml(text: string): string {
  if (!/[&<>]/.test(text)) return text;
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Texts are written unescaped, since addresses and codes need no escaping. */
interface NetBlock {
  readonly startAddress: string;
  readonly endAddress: string;
  /** Null when the range is no CIDR block. */
  readonly prefixLength: number | null;
  /** ARIN's files use both spellings. */
  readonly lengthName: "cidrLength" | "cidrLenth";
  /** ARIN's net type: `A` allocation, `S` reassignment, … */
  readonly type: string;
}

export function netBlockText(block: NetBlock): string {
  const { prefixLength, lengthName, endAddress, startAddress, type } = block;
  const digits = prefixLength !== null && prefixLength < 10 ? `0${prefixLength}` : `${prefixLength}`;
  const length = prefixLength === null ? "" : `<${lengthName}>${digits}</${lengthName}>`;
  return `<netBlock>${length}<endAddress>${endAddress}</endAddress><startAddress>${startAddress}</startAddress><type>${type}</type></netBlock>`;
}

const whoisServers: Readonly<Record<string, string>> = {
  afrinic: "whois.afrinic.net",
  apnic: "whois.apnic.net",
  arin: "whois.arin.net",
  lacnic: "whois.lacnic.net",
  ripencc: "whois.ripe.net",
};

export interface IanaRecord {
  /** `002/8`, `2a00::/12`. */
  readonly prefix: string;
  readonly designation: string;
  /** The registry whose WHOIS server is responsible, or null. */
  readonly registry: string | null;
  readonly status: "ALLOCATED" | "LEGACY" | "RESERVED";
}

function ianaRecordText({ prefix, designation, registry, status }: IanaRecord): string {
  const name = prefix.includes(":") ? "description" : "designation";
  const whois = registry === null ? "" : `\n    <whois>${whoisServers[registry]}</whois>`;
  return `  <record>
    <prefix>${prefix}</prefix>
    <${name}>${designation}</${name}>
    <date>2005-01</date>${whois}
    <status>${status}</status>
  </record>`;
}

interface IanaFile {
  readonly id: "ipv4-address-space" | "ipv6-unicast-address-assignments";
  readonly title: string;
  /** ISO day. */
  readonly updated: string;
  readonly records: readonly IanaRecord[];
}

export function ianaFileText({ id, title, updated, records }: IanaFile): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<registry xmlns="http://www.iana.org/assignments" id="${id}">
  <title>${title}</title>
  <updated>${updated}</updated>
${records.map(ianaRecordText).join("\n")}
</registry>
`;
}

/** An attribute of an RPSL object as the registries print it (RFC 2622 section 2): the value from the seventeenth column. */
export function attribute(name: string, value: string): string {
  return value === "" ? `${name}:\n` : `${`${name}:`.padEnd(16)}${value}\n`;
}

/** `2.3|registry|serial|records|startdate|enddate|UTCoffset`; days are compact. */
export function versionLine(facts: {
  readonly registry: string;
  readonly day: string;
  readonly records: number;
}): string {
  const { registry, day, records } = facts;
  return `2.3|${registry}|${day}|${records}|19960101|${day}|+0000\n`;
}

export function summaryLine(registry: string, type: "asn" | "ipv4" | "ipv6", count: number): string {
  return `${registry}|*|${type}|*|${count}|summary\n`;
}

interface DelegationFields {
  readonly registry: string;
  /** Alpha-2; empty when unassigned. */
  readonly country: string;
  readonly type: "asn" | "ipv4" | "ipv6";
  readonly start: string;
  /** IPv4: a number of addresses; IPv6: a prefix length; asn: a number of them. */
  readonly value: number | null;
  readonly day: string;
  readonly status: string;
  readonly opaqueId: string;
}

export function delegationLine(fields: DelegationFields): string {
  const { registry, country, type, start, value, day, status, opaqueId } = fields;
  return `${registry}|${country}|${type}|${start}|${value ?? ""}|${day}|${status}|${opaqueId}\n`;
}
