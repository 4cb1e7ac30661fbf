/**
 * Objects beside the hierarchy: stand-ins for other registries' space, special-purpose ranges, and ranges
 * that two registries' databases both hold (early registrations). How many of each is the plan's business.
 */

import {
  attribute,
  element,
  ipv4Text,
  netBlockText,
  paddedIpv4Text,
  shortBlockText,
} from "#ops/world/registry-text";
import { readIpv4 } from "#rir-import/formats/registry-range";
import { type RegionalRegistry, regionalRegistries, sharedOctets } from "./address-blocks.ts";
import { organisationHandle, rpslSources } from "./handles.ts";
import { draw } from "./path-random.ts";
import { countryOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";

interface OddObject {
  readonly family: 4 | 6;
  readonly text: string;
  /** Why the importer drops it; null for what it keeps. */
  readonly ignored: string | null;
}

/** All of a registry's, both families. */
export function* oddObjects(plan: RegistryPlan, firstShared: number): Generator<OddObject> {
  for (let at = 0; at < plan.placeholders; at++) yield placeholder(plan, at);
  for (let at = 0; at < plan.specials; at++) yield special(plan, at);
  for (let at = 0; at < plan.shared; at++) yield shared(plan, firstShared + at);
}

/** The number of the first shared range that a registry's database holds; ARIN's holds them all. */
export function firstSharedOf(plans: readonly RegistryPlan[], registry: RegionalRegistry): number {
  if (registry === "arin") return 0;
  const before = regionalRegistries.slice(0, regionalRegistries.indexOf(registry));
  return plans
    .filter((plan) => plan.registry !== "arin" && before.includes(plan.registry))
    .reduce((sum, plan) => sum + plan.shared, 0);
}

/** ARIN's organisation for a shared range: what counts, since IANA gave the block to ARIN. */
export function sharedHolder(arin: RegistryPlan, number: number): number {
  return draw(arin.path, 170 + number) % arin.organisations;
}

/** One /24 each, from its start. */
function sharedBlock(number: number): { readonly first: number; readonly bits: number } {
  const octet = sharedOctets[Math.floor(number / 65_536)] as number;
  return { first: octet * 2 ** 24 + (number % 65_536) * 256, bits: 8 - (draw(number, 171) % 3) };
}

function shared(plan: RegistryPlan, number: number): OddObject {
  const { first, bits } = sharedBlock(number);
  const isArin = plan.registry === "arin";
  const path = draw(plan.path ^ number, 172);
  const text = plainObjectText(plan, {
    family: 4,
    first: ipv4Text(first),
    last: ipv4Text(first + 2 ** bits - 1),
    prefixLength: 32 - bits,
    name: `EARLY-${number}`,
    holder: "Early Registrations Desk",
    netType: "DS",
    organisation: isArin ? sharedHolder(plan, number) : draw(path, 0) % plan.organisations,
  });
  return { family: 4, text, ignored: null };
}

const specialRanges: readonly (readonly [first: string, last: string, prefixLength: number])[] = [
  ["10.0.0.0", "10.255.255.255", 8],
  ["192.168.0.0", "192.168.255.255", 16],
  ["172.16.32.0", "172.16.63.255", 19],
  ["100.64.0.0", "100.127.255.255", 10],
  ["fd00:1234::", "fd00:1234:ffff:ffff:ffff:ffff:ffff:ffff", 32],
  ["198.18.7.0", "198.18.7.255", 24],
  ["203.0.113.0", "203.0.113.127", 25],
  ["127.0.0.1", "127.0.0.1", 32],
  ["2001:db8:17::", "2001:db8:17:ffff:ffff:ffff:ffff:ffff", 48],
];

function special(plan: RegistryPlan, at: number): OddObject {
  const [first, last, prefixLength] = specialRanges[at % specialRanges.length] as (typeof specialRanges)[0];
  const family = first.includes(":") ? 6 : 4;
  const text = plainObjectText(plan, {
    family,
    first,
    last,
    prefixLength,
    name: `INTERNAL-${at}`,
    holder: "Internal Use Office",
    netType: "S",
    organisation: null,
  });
  return { family, text, ignored: "special-purpose range" };
}

/** Names under which registries file what is not theirs. */
const placeholderNames = [
  "NON-RIPE-NCC-MANAGED-ADDRESS-BLOCK",
  "APNIC-ERX-128-1-0-0",
  "STUB-128-1SLASH16",
  "EU-TRANSFERRED-20190401",
  "IANA-NETBLOCK-24",
];

const otherNetTypes = ["RX", "AP", "FX", "LN", "PX"];

function placeholder(plan: RegistryPlan, at: number): OddObject {
  if (at === 0 && plan.registry !== "arin") return wholeSpace(plan);
  const isOther = plan.registry === "arin" && at % 2 === 0;
  const first = (1 + (draw(plan.path, 180 + at) % 223)) * 2 ** 24 + (at % 256) * 65_536;
  const isByWords = plan.registry === "lacnic" || at % 6 === 5;
  const text = plainObjectText(plan, {
    family: 4,
    first: ipv4Text(first),
    last: ipv4Text(first + 65_535),
    prefixLength: 16,
    name:
      isOther || (isByWords && plan.registry !== "arin")
        ? `MOVED-${at}`
        : (placeholderNames[at % placeholderNames.length] as string),
    holder: isByWords ? "These addresses were transferred to ARIN in 2003" : "Addresses of another registry",
    netType: isOther ? (otherNetTypes[at % otherNetTypes.length] as string) : "S",
    organisation: null,
  });
  return { family: 4, text, ignored: isOther ? "net type of another registry" : "placeholder" };
}

function wholeSpace(plan: RegistryPlan): OddObject {
  const whole = { first: "0.0.0.0", last: "255.255.255.255", prefixLength: 0, name: "IANA-BLK" };
  const text = plainObjectText(plan, {
    ...whole,
    family: 4,
    holder: "The whole IPv4 address space",
    netType: "S",
    organisation: null,
  });
  return { family: 4, text, ignored: "placeholder" };
}

// A short object in the format of any registry, for what stands beside the hierarchy.

interface PlainObject {
  readonly family: 4 | 6;
  /** First and last address. */
  readonly first: string;
  readonly last: string;
  readonly prefixLength: number;
  readonly name: string;
  readonly holder: string;
  /** ARIN only. */
  readonly netType: string;
  readonly organisation: number | null;
}

/** With the empty line behind it. */
function plainObjectText(plan: RegistryPlan, object: PlainObject): string {
  if (plan.registry === "arin") return plainNet(object);
  return plan.registry === "lacnic" ? plainLacnic(object) : plainRpsl(plan, object);
}

function plainRpsl({ registry }: RegistryPlan, object: PlainObject): string {
  const { family, first, last, prefixLength, name, holder, organisation } = object;
  const range = family === 4 ? `${first} - ${last}` : `${first}/${prefixLength}`;
  const handle = organisation === null ? "" : attribute("org", organisationHandle(registry, organisation));
  return (
    attribute(family === 4 ? "inetnum" : "inet6num", range) +
    attribute("netname", name) +
    attribute("descr", holder) +
    attribute("country", countryOf(registry, 0)) +
    handle +
    attribute("status", "LEGACY") +
    attribute("mnt-by", "RIR-HM-MNT") +
    `${attribute("source", rpslSources[registry])}\n`
  );
}

function plainLacnic({ family, first, prefixLength, holder, organisation }: PlainObject): string {
  const range = family === 4 ? shortBlockText(readIpv4(first), prefixLength) : `${first}/${prefixLength}`;
  const id = organisation === null ? "" : attribute("ownerid", organisationHandle("lacnic", organisation));
  return (
    attribute("inetnum", range) +
    attribute("status", "allocated") +
    attribute("owner", holder) +
    id +
    attribute("country", countryOf("lacnic", 0)) +
    attribute("created", "20020101") +
    `${attribute("source", "LACNIC")}\n`
  );
}

function plainNet(object: PlainObject): string {
  const { family, first, last, prefixLength, name, netType, organisation } = object;
  const written = (address: string) =>
    family === 4 ? paddedIpv4Text(readIpv4(address)) : address.toUpperCase();
  const block = netBlockText({
    startAddress: written(first),
    endAddress: written(last),
    prefixLength,
    lengthName: "cidrLenth",
    type: netType,
  });
  const owner = organisation === null ? "" : element("orgHandle", organisationHandle("arin", organisation));
  return `<net>
  <handle>NET-${first.replace(/[.:]+/g, "-")}-9</handle>
  <name>${name}</name>
  <netBlocks>${block}</netBlocks>
  ${owner}
  <version>${family}</version>
</net>
`;
}
