/**
 * A world's ranges as RPSL objects (RFC 2622), in the dialects of four registries: RIPE, APNIC and AFRINIC
 * write `inetnum: a - b` with an `org:` that an organisation object explains; LACNIC writes shortened CIDR
 * blocks (`200.3.12/22`) and the owner's name itself. ARIN publishes XML: see arin-xml-text.ts.
 */

import { formatAddress } from "#core/ip/address";
import { firstAddress, formatRange, lastAddress, prefixLengthOf } from "#core/ip/range";
import { shortBlockText } from "../generate/address-text.ts";
import { attribute } from "../generate/rpsl-attributes.ts";
import type { SubnetKind, World, WorldSubnet } from "./model.ts";
import type { RegionalRegistry } from "./places.ts";
import {
  fileDay,
  holderName,
  lacnicHandle,
  organisationHandle,
  registeredOn,
  subnetsOf,
} from "./registry-names.ts";

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

/** The objects of the classes asked for, as one file. */
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

/** LACNIC's file: networks of both families, each with its owner. Latin-1 in the field, ASCII here. */
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

/** Holders of this registry's ranges, in the order of their numbers. */
function organisationsOf(world: World, registry: RpslRegistry): number[] {
  const holders = subnetsOf(world, registry).flatMap((subnet) =>
    subnet.holder === null ? [] : [subnet.holder],
  );
  return [...new Set(holders)].sort((a, b) => a - b);
}

/** `200.3.12/22`: octets that are zero at the end are left out, as LACNIC does. */
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
