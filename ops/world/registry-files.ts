/**
 * Writes a world's registry as the files that registries publish, so that the importer reads the demonstration through
 * the same readers as real data: IANA's XML, extended statistics of all five registries, RPSL (RIPE's split by object
 * class, the others whole, LACNIC's in its own dialect), and ARIN's XML. Some are compressed. The same world gives the
 * same bytes.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Registry } from "#coordinator/place/subnets/subnet";
import { formatAddress, type IpAddress } from "#core/ip/address";
import { firstAddress, formatRange, lastAddress, prefixLengthOf } from "#core/ip/range";
import { geofeedFileOf } from "#rir-import/formats/geofeed";
import type { World, WorldSite, WorldSubnet } from "./model.ts";
import type { Place, RegionalRegistry } from "./places.ts";
import { registryNames } from "./plan-registry.ts";
import {
  arinHandle,
  compactDay,
  delegationLine,
  element,
  escapeXml,
  fileDay,
  geofeedUrl,
  holderName,
  type IanaRecord,
  ianaFileText,
  lacnicText,
  namesGeofeed,
  netBlockText,
  opaqueId,
  paddedIpv4Text,
  type RpslClass,
  type RpslRegistry,
  registeredOn,
  rpslText,
  subnetsOf,
  summaryLine,
  versionLine,
} from "./registry-text.ts";
import { hashText } from "./seeded-random.ts";

/**
 * Writes the files into the folder and returns their paths. The folder is created if necessary, and files of the same
 * name are replaced. A registry without ranges in this world has no file.
 */
export async function writeRegistryFiles(world: World, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const paths: string[] = [];
  for (const { name, registry, families, text } of registryFiles) {
    if (!holdsAny(world, registry, families)) continue;
    const path = join(folder, name);
    const content = Buffer.from(text(world), "utf8");
    await writeFile(path, name.endsWith(".gz") ? gzipSync(content) : content);
    paths.push(path);
  }
  return paths;
}

interface RegistryFile {
  /** The name that the registry uses. A file `.gz` is compressed. */
  readonly name: string;
  /** The registry whose ranges the file contains. */
  readonly registry: Registry;
  readonly families: readonly (4 | 6)[];
  readonly text: (world: World) => string;
}

const day = fileDay.replaceAll("-", "");
const both = [4, 6] as const;

// Writes a world's ranges as ARIN's bulk WHOIS in XML: `<org>`, `<customer>` and `<net>` elements, octets with leading
// zeros, and the country only with the organisation. A provider's allocations are one net with several net blocks.
// Every fourth assignment belongs to a customer (a simple reassignment) instead of an organisation.

const plain = (address: IpAddress) => formatAddress(address).toUpperCase();
const customerHandle = (holder: number) => `C${String(holder + 1).padStart(8, "0")}`;

const registryFiles: readonly RegistryFile[] = [
  { name: "ipv4-address-space.xml", registry: "iana", families: [4], text: ianaIpv4Xml },
  { name: "ipv6-unicast-address-assignments.xml", registry: "iana", families: [6], text: ianaIpv6Xml },
  statistics("afrinic", ""),
  statistics("apnic", ".gz"),
  statistics("arin", ""),
  statistics("lacnic", ""),
  statistics("ripencc", ".gz"),
  rpsl("afrinic.db.gz", "afrinic", ["organisation", "inetnum", "inet6num"]),
  rpsl("apnic.db", "apnic", ["inetnum", "inet6num", "organisation"]),
  { name: "arin_db.xml.gz", registry: "arin", families: both, text: arinXml },
  { name: "lacnic.db", registry: "lacnic", families: both, text: lacnicText },
  rpsl("ripe.db.inetnum.gz", "ripencc", ["inetnum"]),
  rpsl("ripe.db.inet6num", "ripencc", ["inet6num"]),
  rpsl("ripe.db.organisation.gz", "ripencc", ["organisation"]),
];

function statistics(registry: RegionalRegistry, ending: string): RegistryFile {
  const name = `delegated-${registry}-extended-${day}${ending}`;
  return { name, registry, families: both, text: (world) => delegatedText(world, registry) };
}

function rpsl(name: string, registry: RpslRegistry, classes: readonly RpslClass[]): RegistryFile {
  const families = both.filter(
    (family) => classes.length > 1 || classes[0] !== (family === 4 ? "inet6num" : "inetnum"),
  );
  return { name, registry, families, text: (world) => rpslText(world, registry, classes) };
}

function holdsAny(world: World, registry: Registry, families: readonly (4 | 6)[]): boolean {
  return world.subnets.some(
    (subnet) =>
      families.includes(subnet.range.family) &&
      (registry === "iana" ? subnet.kind === "iana" : subnet.kind !== "iana" && subnet.registry === registry),
  );
}

// Writes a world's allocations as extended statistics of delegated resources (RIR statistics exchange format, version
// 2.3), one file per registry, and the top of the hierarchy as IANA's two XML registries.

/** Contains the ranges of providers and national registries. Assignments below them are in the WHOIS files. */
function delegatedText(world: World, registry: RegionalRegistry): string {
  const records = subnetsOf(world, registry)
    .filter((subnet) => subnet.kind === "allocation" || subnet.kind === "national")
    .map((subnet) => delegatedLine(world, registry, subnet));
  const day = compactDay(fileDay);
  const count = (type: string) => records.filter((record) => record.split("|")[2] === type).length;
  const asNumbers = [`${registry}|ZZ|asn|65000|1|${day}|reserved||\n`];
  const head = [
    versionLine({ registry, day, records: records.length + asNumbers.length }),
    summaryLine(registry, "asn", asNumbers.length),
    summaryLine(registry, "ipv4", count("ipv4")),
    summaryLine(registry, "ipv6", count("ipv6")),
  ];
  return [...head, ...asNumbers, ...records].join("");
}

function ianaIpv4Xml(world: World): string {
  const blocks = topBlocks(world, 4).map((subnet) =>
    ianaBlock(`${String(Math.floor(Number(subnet.range.first) / 2 ** 24)).padStart(3, "0")}/8`, subnet),
  );
  const records = [
    {
      prefix: "000/8",
      designation: "IANA - Local Identification",
      registry: null,
      status: "RESERVED" as const,
    },
    ...blocks,
    { prefix: "224/8", designation: "Multicast", registry: null, status: "RESERVED" as const },
  ];
  return ianaFileText({ id: "ipv4-address-space", title: "IPv4 Address Space", updated: fileDay, records });
}

function ianaIpv6Xml(world: World): string {
  return ianaFileText({
    id: "ipv6-unicast-address-assignments",
    title: "IPv6 Global Unicast Address Space",
    updated: fileDay,
    records: topBlocks(world, 6).map((subnet) => ianaBlock(formatRange(subnet.range), subnet)),
  });
}

function ianaBlock(prefix: string, subnet: WorldSubnet): IanaRecord {
  const registry = subnet.registry as RegionalRegistry;
  return { prefix, designation: registryNames[registry], registry, status: "ALLOCATED" };
}

function delegatedLine(world: World, registry: RegionalRegistry, subnet: WorldSubnet): string {
  const isIpv4 = subnet.range.family === 4;
  return delegationLine({
    registry,
    country: subnet.country ?? "ZZ",
    type: isIpv4 ? "ipv4" : "ipv6",
    start: formatAddress(firstAddress(subnet.range)),
    value: isIpv4 ? Number(subnet.range.last) - Number(subnet.range.first) + 1 : prefixLengthOf(subnet.range),
    day: compactDay(registeredOn(world, subnet)),
    status: "allocated",
    opaqueId: opaqueId(world, subnet.holder ?? 0),
  });
}

function topBlocks(world: World, family: 4 | 6): WorldSubnet[] {
  return world.subnets.filter((subnet) => subnet.kind === "iana" && subnet.range.family === family);
}

function arinXml(world: World): string {
  const subnets = subnetsOf(world, "arin");
  const holders = [...new Set(subnets.flatMap((subnet) => (subnet.holder === null ? [] : [subnet.holder])))];
  const elements = [
    ...holders.toSorted((a, b) => a - b).map((holder) => holderElement(world, holder)),
    ...netsOf(subnets).map((blocks) => netElement(world, blocks)),
  ];
  return `<?xml version="1.0" encoding="UTF-8"?>\n<bulkwhois>\n${elements.join("\n")}\n</bulkwhois>\n`;
}

/** Makes one net of all allocations with the same holder and family. */
function netsOf(subnets: readonly WorldSubnet[]): WorldSubnet[][] {
  const allocations = new Map<string, WorldSubnet[]>();
  const nets: WorldSubnet[][] = [];
  for (const subnet of subnets) {
    const key = `${subnet.holder} ${subnet.range.family}`;
    const known = subnet.kind === "allocation" ? allocations.get(key) : undefined;
    if (known) known.push(subnet);
    else {
      const net = [subnet];
      nets.push(net);
      if (subnet.kind === "allocation") allocations.set(key, net);
    }
  }
  return nets;
}

/** Only reassignments have customers as holders. */
function isCustomer(holder: number): boolean {
  return holder % 4 === 3;
}

function holderElement(world: World, holder: number): string {
  const { name = "", country = null } = world.holders[holder] ?? {};
  const code =
    country === null ? "" : `<iso3166-1><code2>${country}</code2><name>${country}</name></iso3166-1>`;
  const tag = isCustomer(holder) ? "customer" : "org";
  const handle = isCustomer(holder) ? customerHandle(holder) : arinHandle(world, holder);
  const facts = [
    element("city", "Withheld") + code,
    element("handle", handle),
    element("name", name),
    element("registrationDate", `${fileDay}T00:00:00-04:00`),
  ];
  return `<${tag}>${facts.join("")}</${tag}>`;
}

function netElement(world: World, subnets: readonly WorldSubnet[]): string {
  const [first] = subnets;
  if (!first) return "";
  const holder = first.holder ?? 0;
  const owner = isCustomer(holder)
    ? element("customerHandle", customerHandle(holder))
    : element("orgHandle", arinHandle(world, holder));
  const handle = `NET${first.range.family === 6 ? "6" : ""}-${plain(firstAddress(first.range)).replace(/[.:]+/g, "-")}-1`;
  const lines = [
    element("version", String(first.range.family)),
    element("handle", handle),
    `<netBlocks>${subnets.map(netBlock).join("")}</netBlocks>`,
    element("name", first.name),
    owner,
    element("registrationDate", `${registeredOn(world, first)}T00:00:00-04:00`),
    element("updateDate", `${fileDay}T00:00:00-04:00`),
    `<comment><line number="0">${escapeXml(holderName(world, first))}</line></comment>`,
  ];
  return `<net>\n  ${lines.join("\n  ")}\n</net>`;
}

function netBlock(subnet: WorldSubnet): string {
  return netBlockText({
    startAddress: padded(firstAddress(subnet.range)),
    endAddress: padded(lastAddress(subnet.range)),
    prefixLength: prefixLengthOf(subnet.range),
    lengthName: "cidrLength",
    type: subnet.kind === "allocation" ? "A" : subnet.parent === null ? "DS" : "S",
  });
}

/** Returns for example `008.000.144.003`. IPv6 addresses stay as they are. */
function padded(address: IpAddress): string {
  return address.family === 6 ? plain(address) : paddedIpv4Text(address.value);
}

// Writes what the networks of a world publish about the places of their ranges: a geofeed (RFC 8805) named by every
// second allocation of RIPE's part (`geofeed:`, registry-text.ts), and a cloud's list of ranges by region in Google's
// form. Networks publish what they intend, not what they measure, so one line in twelve names another place. The same
// world gives the same bytes.

/** Writes the files into the folder and returns their paths. Writes none if the world has no places. */
export async function writePublishedFiles(world: World, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const feed = publishing(world, (site) => isUnderGeofeed(world, site.subnet));
  const cloud = publishing(
    world,
    (site) => site.range.family === 4 && hashText(world.seed, site.name) % 6 === 0,
  );
  const files = [
    { name: geofeedFileOf(geofeedUrl(world)), lines: feed.length, text: geofeedText(world, feed) },
    { name: "cloud.json", lines: cloud.length, text: cloudText(cloud) },
  ].filter(({ lines }) => lines > 0);
  for (const { name, text } of files) await writeFile(join(folder, name), text);
  return files.map(({ name }) => join(folder, name));
}

interface PublishedSubnet {
  readonly subnet: number;
  readonly range: World["subnets"][number]["range"];
  readonly name: string;
  readonly place: Place;
}

/** Returns each subnet of sites that are in one place, once. */
function publishing(
  world: World,
  isPublished: (subnet: Omit<PublishedSubnet, "place">) => boolean,
): readonly PublishedSubnet[] {
  const found = new Map<number, PublishedSubnet>();
  for (const site of world.sites) {
    const subnet = world.subnets[site.subnet];
    const place = placeOf(world, site);
    if (subnet === undefined || place === null || found.has(site.subnet)) continue;
    const { range, name } = subnet;
    const one = { subnet: site.subnet, range, name };
    if (prefixLengthOf(range) !== null && isPublished(one)) found.set(site.subnet, { ...one, place });
  }
  return [...found.values()];
}

function placeOf(world: World, { place, subnet }: WorldSite): Place | null {
  if (place === null) return null;
  const hash = hashText(world.seed, `published ${subnet}`);
  const isWrong = hash % 12 === 0;
  return world.places[isWrong ? hash % world.places.length : place] ?? null;
}

function isUnderGeofeed(world: World, subnet: number): boolean {
  for (let at: number | null = subnet; at !== null; at = world.subnets[at]?.parent ?? null) {
    const above = world.subnets[at];
    if (above !== undefined && namesGeofeed(above)) return true;
  }
  return false;
}

function geofeedText(world: World, subnets: readonly PublishedSubnet[]): string {
  const lines = subnets.map(({ range, place }) => `${formatRange(range)},${place.country},,${place.name},`);
  return `# geofeed of ${world.name}, ${fileDay}\n${lines.join("\n")}\n`;
}

function cloudText(subnets: readonly PublishedSubnet[]): string {
  const prefixes = subnets.map(({ range, place }) => ({
    ipv4Prefix: formatRange(range),
    service: "Emulated Cloud",
    scope: `${place.country}-${place.name}1`.toLowerCase().replaceAll(" ", ""),
  }));
  const list = { syncToken: "1", creationTime: `${fileDay}T00:00:00`, prefixes };
  return `${JSON.stringify(list, null, 2)}\n`;
}
