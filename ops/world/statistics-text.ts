/**
 * A world's allocations as extended statistics of delegated resources (RIR statistics exchange format,
 * version 2.3), one file per registry, and the top of the hierarchy as IANA's two XML registries.
 */
import { formatAddress } from "#core/ip/address";
import { firstAddress, formatRange, prefixLengthOf } from "#core/ip/range";
import { type IanaRecord, ianaFileText } from "../generate/iana-text.ts";
import { delegationLine, summaryLine, versionLine } from "../generate/statistics-lines.ts";
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
  const asNumbers = [`${registry}|ZZ|asn|65000|1|${day}|reserved||\n`];
  const head = [
    versionLine({ registry, day, records: records.length + asNumbers.length }),
    summaryLine(registry, "asn", asNumbers.length),
    summaryLine(registry, "ipv4", count("ipv4")),
    summaryLine(registry, "ipv6", count("ipv6")),
  ];
  return [...head, ...asNumbers, ...records].join("");
}

export function ianaIpv4Xml(world: World): string {
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

export function ianaIpv6Xml(world: World): string {
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
