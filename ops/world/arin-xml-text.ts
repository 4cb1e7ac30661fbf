/**
 * A world's ranges as ARIN's bulk WHOIS in XML: `<org>`, `<customer>` and `<net>` elements, octets with
 * leading zeros, the country with the organisation only. A provider's allocations are one net with several
 * net blocks; every fourth assignment goes to a customer (a simple reassignment) in place of an organisation.
 */
import { formatAddress, type IpAddress } from "#core/ip/address";
import { firstAddress, lastAddress, prefixLengthOf } from "#core/ip/range";
import { paddedIpv4Text } from "../generate/address-text.ts";
import { element, escapeXml, netBlockText } from "../generate/xml-text.ts";
import type { World, WorldSubnet } from "./model.ts";
import { arinHandle, fileDay, holderName, registeredOn, subnetsOf } from "./registry-names.ts";

export function arinXml(world: World): string {
  const subnets = subnetsOf(world, "arin");
  const holders = [...new Set(subnets.flatMap((subnet) => (subnet.holder === null ? [] : [subnet.holder])))];
  const elements = [
    ...holders.toSorted((a, b) => a - b).map((holder) => holderElement(world, holder)),
    ...netsOf(subnets).map((blocks) => netElement(world, blocks)),
  ];
  return `<?xml version="1.0" encoding="UTF-8"?>\n<bulkwhois>\n${elements.join("\n")}\n</bulkwhois>\n`;
}

/** Allocations of one holder and family make one net. */
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

/** Customers are a kind of holder that only reassignments have. */
function isCustomer(holder: number): boolean {
  return holder % 4 === 3;
}

function holderElement(world: World, holder: number): string {
  const { name = "", country = null } = world.holders[holder] ?? {};
  const code =
    country === null ? "" : `<iso3166-1><code2>${country}</code2><name>${country}</name></iso3166-1>`;
  const tag = isCustomer(holder) ? "customer" : "org";
  const handle = isCustomer(holder) ? customerHandle(holder) : arinHandle(world, holder);
  return `<${tag}>${element("city", "Withheld")}${code}${element("handle", handle)}${element("name", name)}${element("registrationDate", `${fileDay}T00:00:00-04:00`)}</${tag}>`;
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

/** `008.000.144.003`; IPv6 as it is. */
function padded(address: IpAddress): string {
  return address.family === 6 ? plain(address) : paddedIpv4Text(address.value);
}

const plain = (address: IpAddress) => formatAddress(address).toUpperCase();
const customerHandle = (holder: number) => `C${String(holder + 1).padStart(8, "0")}`;
