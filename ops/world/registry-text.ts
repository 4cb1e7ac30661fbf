/**
 * Writes pieces of the texts that registries publish: addresses in each registry's spelling, IANA's XML, ARIN's net
 * blocks, attributes of RPSL objects, and lines of the extended statistics (RIR statistics exchange format, version
 * 2.3).
 */
import { formatAddress } from "#core/ip/address";
import { firstAddress, formatRange, lastAddress, prefixLengthOf } from "#core/ip/range";
import type { SubnetKind, World, WorldSubnet } from "./model.ts";
import type { RegionalRegistry } from "./places.ts";
import { hashText } from "./seeded-random.ts";

const octets = Array.from({ length: 256 }, (_, octet) => String(octet));
const paddedOctets = octets.map((octet) => octet.padStart(3, "0"));

export function ipv4Text(address: number): string {
  return `${octets[address >>> 24]}.${octets[(address >>> 16) & 255]}.${octets[(address >>> 8) & 255]}.${octets[address & 255]}`;
}

/** Example: `008.000.144.003`. */
export function paddedIpv4Text(address: number): string {
  return `${paddedOctets[address >>> 24]}.${paddedOctets[(address >>> 16) & 255]}.${paddedOctets[(address >>> 8) & 255]}.${paddedOctets[address & 255]}`;
}

/** Example: `200.3.12/22`. Omits trailing zero octets, but keeps at least one octet. */
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

/** Texts are not escaped, since addresses and codes need no escaping. */
interface NetBlock {
  readonly startAddress: string;
  readonly endAddress: string;
  /** Null when the range is not a CIDR block. */
  readonly prefixLength: number | null;
  /** ARIN's files use both spellings. */
  readonly lengthName: "cidrLength" | "cidrLenth";
  /** ARIN's net type: `A` for allocations, `S` for reassignments, … */
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
  /** Examples: `002/8`, `2a00::/12`. */
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
  /** An ISO date. */
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

/** An attribute of an RPSL object as registries print it (RFC 2622 section 2), with the value from the 17th column on. */
export function attribute(name: string, value: string): string {
  return value === "" ? `${name}:\n` : `${`${name}:`.padEnd(16)}${value}\n`;
}

/** Returns `2.3|registry|serial|records|startdate|enddate|UTCoffset`. Dates have no separators. */
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
  /** Alpha-2 code. Empty when unassigned. */
  readonly country: string;
  readonly type: "asn" | "ipv4" | "ipv6";
  readonly start: string;
  /** IPv4: how many addresses. IPv6: the prefix length. asn: how many numbers. */
  readonly value: number | null;
  readonly day: string;
  readonly status: string;
  readonly opaqueId: string;
}

export function delegationLine(fields: DelegationFields): string {
  const { registry, country, type, start, value, day, status, opaqueId } = fields;
  return `${registry}|${country}|${type}|${start}|${value ?? ""}|${day}|${status}|${opaqueId}\n`;
}

// Writes a world's ranges as RPSL objects (RFC 2622) in the dialects of four registries. RIPE, APNIC and AFRINIC write
// `inetnum: a - b` with an `org:` that refers to an organisation object. LACNIC writes shortened CIDR blocks
// (`200.3.12/22`) and the owner's name itself. ARIN publishes XML instead (registry-files.ts).

export type RpslRegistry = Exclude<RegionalRegistry, "arin" | "lacnic">;
export type RpslClass = "inetnum" | "inet6num" | "organisation";

const sources: Readonly<Record<RpslRegistry, string>> = {
  afrinic: "AFRINIC",
  apnic: "APNIC",
  ripencc: "RIPE",
};

const statuses: Readonly<Record<SubnetKind, { readonly apnic: string; readonly others: string }>> = {
  iana: { apnic: "ALLOCATED PORTABLE", others: "ALLOCATED UNSPECIFIED" },
  national: { apnic: "ALLOCATED PORTABLE", others: "ALLOCATED UNSPECIFIED" },
  allocation: { apnic: "ALLOCATED PORTABLE", others: "ALLOCATED PA" },
  pool: { apnic: "ALLOCATED NON-PORTABLE", others: "SUB-ALLOCATED PA" },
  assignment: { apnic: "ASSIGNED NON-PORTABLE", others: "ASSIGNED PA" },
  host: { apnic: "ASSIGNED NON-PORTABLE", others: "ASSIGNED PA" },
};

export function rpslText(world: World, registry: RpslRegistry, classes: readonly RpslClass[]): string {
  const head = [`% ${sources[registry]} database, generated for ${world.name} on ${fileDay}`, ""];
  const objects = classes.flatMap((name) =>
    name === "organisation"
      ? organisationsOf(world, registry).map((holder) => organisationObject(world, registry, holder))
      : subnetsOf(world, registry)
          .filter((subnet) => subnet.range.family === (name === "inetnum" ? 4 : 6))
          .map((subnet) => networkObject(world, registry, subnet)),
  );
  return `${[...head, ...objects].join("\n")}\n`;
}

/** LACNIC's file: networks of both families, each with its owner. The real file is Latin-1, this one ASCII. */
export function lacnicText(world: World): string {
  const objects = subnetsOf(world, "lacnic").map((subnet) =>
    attributes([
      ["inetnum", shortBlock(subnet)],
      ["status", subnet.kind === "allocation" ? "allocated" : "reassigned"],
      ["owner", holderName(world, subnet)],
      ...(subnet.holder === null ? [] : [["ownerid", lacnicHandle(world, subnet.holder)] as const]),
      ["city", ""],
      ["country", subnet.country ?? ""],
      ["created", registeredOn(world, subnet)],
      ["changed", fileDay],
      ["source", "LACNIC"],
    ]),
  );
  return `${objects.join("\n")}\n`;
}

/** Every second allocation in RIPE's part names a geofeed (RFC 9632; registry-files.ts). */
export const namesGeofeed = ({ kind, registry, name }: WorldSubnet) =>
  kind === "allocation" && registry === "ripencc" && hashText(0, name) % 2 === 0;

export const geofeedUrl = ({ name }: Pick<World, "name">) =>
  `https://geofeeds.example/${(name.match(/[A-Za-z0-9]+/g) ?? []).join("-")}.csv`;

function networkObject(world: World, registry: RpslRegistry, subnet: WorldSubnet): string {
  const isIpv4 = subnet.range.family === 4;
  const bounds = `${formatAddress(firstAddress(subnet.range))} - ${formatAddress(lastAddress(subnet.range))}`;
  const status = statuses[subnet.kind][registry === "apnic" ? "apnic" : "others"];
  return attributes([
    [isIpv4 ? "inetnum" : "inet6num", isIpv4 ? bounds : formatRange(subnet.range)],
    ["netname", subnet.name],
    ["descr", holderName(world, subnet)],
    ["country", subnet.country ?? "EU"],
    ...(subnet.holder === null ? [] : [["org", organisationHandle(world, subnet.holder, registry)] as const]),
    ...(namesGeofeed(subnet) ? [["geofeed", geofeedUrl(world)] as const] : []),
    ["admin-c", "DUMY-NIC"],
    ["tech-c", "DUMY-NIC"],
    ["status", isIpv4 ? status : "ALLOCATED-BY-RIR"],
    ["mnt-by", "WORLD-MNT"],
    ["created", `${registeredOn(world, subnet)}T00:00:00Z`],
    ["source", sources[registry]],
  ]);
}

function organisationObject(world: World, registry: RpslRegistry, holder: number): string {
  const { name = "", country = null } = world.holders[holder] ?? {};
  return attributes([
    ["organisation", organisationHandle(world, holder, registry)],
    ["org-name", name],
    ["org-type", "OTHER"],
    ...(country === null ? [] : [["country", country] as const]),
    ["address", "Street address withheld"],
    ["mnt-by", "WORLD-MNT"],
    ["source", sources[registry]],
  ]);
}

/** The numbers of the holders that have ranges of this registry. */
function organisationsOf(world: World, registry: RpslRegistry): number[] {
  const holders = subnetsOf(world, registry).flatMap((subnet) =>
    subnet.holder === null ? [] : [subnet.holder],
  );
  return [...new Set(holders)].sort((a, b) => a - b);
}

/** Example: `200.3.12/22`. LACNIC omits trailing zero octets. */
function shortBlock(subnet: WorldSubnet): string {
  const prefixLength = prefixLengthOf(subnet.range);
  if (prefixLength === null) throw new Error(`${subnet.name}: ${formatRange(subnet.range)} is no CIDR block`);
  const first = firstAddress(subnet.range);
  return first.family === 6
    ? `${formatAddress(first)}/${prefixLength}`
    : shortBlockText(first.value, prefixLength);
}

function attributes(pairs: readonly (readonly [name: string, value: string])[]): string {
  return pairs.map(([name, value]) => attribute(name, value)).join("");
}

// Shared by a world's registry files: their date, holders' handles, registration days. All derive from the world, so
// that the same world gives the same bytes.

/** The date of the data, as the files state it. */
export const fileDay = "2026-10-01";

const handleEndings: Readonly<Record<RegionalRegistry, string>> = {
  afrinic: "AFRINIC",
  apnic: "AP",
  arin: "ARIN",
  lacnic: "LACNIC",
  ripencc: "RIPE",
};

/** Example: `ORG-AB12-RIPE`, with letters from the name and the holder's position as the number. */
function organisationHandle(world: World, holder: number, registry: RegionalRegistry): string {
  return `ORG-${initials(world, holder)}${holder + 1}-${handleEndings[registry]}`;
}

/** LACNIC's owner id, for example `BR-AB12-LACNIC`. */
function lacnicHandle(world: World, holder: number): string {
  return `${world.holders[holder]?.country ?? "UY"}-${initials(world, holder)}${holder + 1}-LACNIC`;
}

/** ARIN's OrgID, which has no prefix and at most about fourteen characters. */
export function arinHandle(world: World, holder: number): string {
  return `${initials(world, holder)}-${holder + 1}`;
}

/** Equal for records of one holder within one file. Has no meaning elsewhere. */
export function opaqueId(world: World, holder: number): string {
  return (
    hashText(world.seed ^ 0x6f70, `holder ${holder}`)
      .toString(16)
      .padStart(8, "0")
      .toUpperCase() + holder.toString(36).toUpperCase()
  );
}

/** The ISO date on which a range was registered, between 1996 and 2025. */
export function registeredOn(world: World, subnet: WorldSubnet): string {
  const draw = hashText(world.seed, subnet.name);
  const day = 1 + ((draw >>> 8) % 28);
  const month = 1 + ((draw >>> 16) % 12);
  return `${1996 + (draw % 30)}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}`;
}

export function compactDay(isoDay: string): string {
  return isoDay.replaceAll("-", "");
}

export function holderName(world: World, subnet: WorldSubnet): string {
  return subnet.holder === null ? "" : (world.holders[subnet.holder]?.name ?? "");
}

/** The subnets in this registry's own files, which are all except the blocks that IANA lists. */
export function subnetsOf(world: World, registry: RegionalRegistry): WorldSubnet[] {
  return world.subnets.filter((subnet) => subnet.registry === registry && subnet.kind !== "iana");
}

function initials(world: World, holder: number): string {
  const name = world.holders[holder]?.name ?? "";
  const letters = name
    .replace(/[^A-Za-z ]/g, " ")
    .trim()
    .split(/\s+/)
    .map((word) => word.charAt(0))
    .join("");
  return `${letters.toUpperCase()}XX`.slice(0, 3);
}
