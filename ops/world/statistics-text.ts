/**
 * A world's allocations as extended statistics of delegated resources (RIR statistics exchange format,
 * version 2.3), one file per registry, and the top of the hierarchy as IANA's two XML registries.
 */
import { formatAddress } from "#core/ip/address";
import { firstAddress, formatRange, prefixLengthOf } from "#core/ip/range";
import type { World, WorldSubnet } from "./model.ts";
import type { RegionalRegistry } from "./places.ts";
import { registryNames } from "./plan-registry.ts";
import { compactDay, fileDay, opaqueId, registeredOn, subnetsOf } from "./registry-names.ts";

/** What went to providers and national registries; assignments below them are the whois files' business. */
export function delegatedText(world: World, registry: RegionalRegistry): string {
  const records = subnetsOf(world, registry)
    .filter((subnet) => subnet.kind === "allocation" || subnet.kind === "national")
    .map((subnet) => delegatedLine(world, registry, subnet));
  const day = compactDay(fileDay);
  const count = (type: string) => records.filter((record) => record.split("|")[2] === type).length;
  const asNumbers = [`${registry}|ZZ|asn|65000|1|${day}|reserved||`];
  const head = [
    `2.3|${registry}|${day}|${records.length + asNumbers.length}|19960101|${day}|+0000`,
    `${registry}|*|asn|*|${asNumbers.length}|summary`,
    `${registry}|*|ipv4|*|${count("ipv4")}|summary`,
    `${registry}|*|ipv6|*|${count("ipv6")}|summary`,
  ];
  return `${[...head, ...asNumbers, ...records].join("\n")}\n`;
}

export function ianaIpv4Xml(world: World): string {
  const blocks = topBlocks(world, 4).map((subnet) => ({
    prefix: `${String(Math.floor(Number(subnet.range.first) / 2 ** 24)).padStart(3, "0")}/8`,
    registry: subnet.registry as RegionalRegistry,
  }));
  const records = [
    ianaRecord("000/8", "IANA - Local Identification", null, "RESERVED"),
    ...blocks.map(({ prefix, registry }) =>
      ianaRecord(prefix, registryNames[registry], registry, "ALLOCATED"),
    ),
    ianaRecord("224/8", "Multicast", null, "RESERVED"),
  ];
  return ianaFile("ipv4-address-space", "IPv4 Address Space", records);
}

export function ianaIpv6Xml(world: World): string {
  const records = topBlocks(world, 6).map((subnet) => {
    const registry = subnet.registry as RegionalRegistry;
    return ianaRecord(formatRange(subnet.range), registryNames[registry], registry, "ALLOCATED");
  });
  return ianaFile("ipv6-unicast-address-assignments", "IPv6 Global Unicast Address Space", records);
}

function delegatedLine(world: World, registry: RegionalRegistry, subnet: WorldSubnet): string {
  const first = formatAddress(firstAddress(subnet.range));
  const isIpv4 = subnet.range.family === 4;
  const value = isIpv4
    ? Number(subnet.range.last) - Number(subnet.range.first) + 1
    : prefixLengthOf(subnet.range);
  return [
    registry,
    subnet.country ?? "ZZ",
    isIpv4 ? "ipv4" : "ipv6",
    first,
    value,
    compactDay(registeredOn(world, subnet)),
    "allocated",
    opaqueId(world, subnet.holder ?? 0),
  ].join("|");
}

function topBlocks(world: World, family: 4 | 6): WorldSubnet[] {
  return world.subnets.filter((subnet) => subnet.kind === "iana" && subnet.range.family === family);
}

const whoisServers: Readonly<Record<RegionalRegistry, string>> = {
  afrinic: "whois.afrinic.net",
  apnic: "whois.apnic.net",
  arin: "whois.arin.net",
  lacnic: "whois.lacnic.net",
  ripencc: "whois.ripe.net",
};

function ianaRecord(
  prefix: string,
  designation: string,
  registry: RegionalRegistry | null,
  status: string,
): string {
  const name = prefix.includes(":") ? "description" : "designation";
  const whois = registry === null ? "" : `\n    <whois>${whoisServers[registry]}</whois>`;
  return `  <record>\n    <prefix>${prefix}</prefix>\n    <${name}>${designation}</${name}>\n    <date>2005-01</date>${whois}\n    <status>${status}</status>\n  </record>`;
}

function ianaFile(id: string, title: string, records: readonly string[]): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<registry xmlns="http://www.iana.org/assignments" id="${id}">
  <title>${title}</title>
  <updated>${fileDay}</updated>
${records.join("\n")}
</registry>
`;
}
