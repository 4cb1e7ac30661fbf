/**
 * Writes a generated registry of any size in the formats that the five registries and IANA publish, to rehearse and measure imports.
 * IANA's blocks, allocations in them, assignments in these, some of which are divided again. An object's range, holder and life
 * follow from its number, so that memory does not grow with the size, and the same settings give the same bytes. The emulated
 * Internet's registry (ops/world) can be compared with its own records; this one is only large.
 */
import { createWriteStream } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { UsageError } from "#core/errors";
import { mix32 } from "#core/random";
import {
  attribute,
  delegationLine,
  element,
  type IanaRecord,
  ianaFileText,
  ipv4Text,
  netBlockText,
  paddedIpv4Text,
  shortBlockText,
  summaryLine,
  versionLine,
} from "#ops/world/registry-text";

export interface GenerateOptions {
  /** Approximate number of network objects in generation 0. */
  readonly objects: number;
  readonly seed?: number;
  /** Empty or missing: an import reads every file of a folder. */
  readonly folder: string;
  /** Quarters later. */
  readonly generation?: number;
  /** Share of objects that come, go or change between two generations. */
  readonly changedShare?: number;
}

export const mostObjects = 10_000_000;

interface Registry {
  readonly name: string;
  /** Share of all objects, as in 2025. */
  readonly share: number;
  /** First octets without special-purpose ranges inside; the first 16 bits of its IPv6 block. */
  readonly octets: string;
  readonly ipv6: string;
  readonly countries: string;
  readonly source: string;
}

const registries: readonly Registry[] = [
  {
    ...{ name: "ripencc", share: 0.45, source: "RIPE", ipv6: "2a00", countries: "DE GB IT FR ES NL SE" },
    octets: "2 5 25 31 37 46 51 57 62 77-95 109 141 145 151 176 178 185 188 193-195 212 213 217",
  },
  {
    ...{ name: "apnic", share: 0.15, source: "APNIC", ipv6: "2400", countries: "AU IN JP CN KR" },
    octets: "1 14 27 36 39 42 43 49 58-61 101 103 106 110-126 133 150 175 180 182 183 202 210 211 218-223",
  },
  {
    ...{ name: "arin", share: 0.3, source: "ARIN", ipv6: "2600", countries: "US CA" },
    octets: "3 4 6-8 11-13 15 16 18 20-24 26 28-30 32-35 38 40 44 45 47 48 50 52 63-76 96-99 104 107 108",
  },
  {
    ...{ name: "lacnic", share: 0.07, source: "LACNIC", ipv6: "2800", countries: "BR AR MX CO" },
    octets: "177 179 181 186 187 189-191 200 201",
  },
  {
    ...{ name: "afrinic", share: 0.03, source: "AFRINIC", ipv6: "2c00", countries: "ZA NG KE EG" },
    octets: "41 102 105 154 196 197",
  },
];

type Settings = Required<Omit<GenerateOptions, "folder">>;

export async function generateRegistry(options: GenerateOptions, onFile = (_name: string) => {}) {
  const settings = { seed: 0, generation: 0, changedShare: 0.01, ...options };
  await mkdir(options.folder, { recursive: true });
  if ((await readdir(options.folder)).length > 0)
    throw new UsageError(`${options.folder} is not empty: name another folder`);
  for (const [name, texts] of filesOf(settings)) {
    onFile(name);
    const target = createWriteStream(join(options.folder, name));
    if (name.endsWith(".gz")) await pipeline(inBlocks(texts), createGzip({ level: 1 }), target);
    else await pipeline(inBlocks(texts), target);
  }
}

/** One write per object would cost more than its bytes. */
function inBlocks(texts: Iterable<string>): Readable {
  function* blocks() {
    let joined = "";
    for (const text of texts) {
      joined += text;
      if (joined.length < 262_144) continue;
      yield Buffer.from(joined, "latin1");
      joined = "";
    }
    yield Buffer.from(joined, "latin1");
  }
  return Readable.from(blocks());
}

function* filesOf(settings: Settings): Generator<[name: string, texts: Iterable<string>]> {
  const day = new Date(Date.UTC(2026, 3 * settings.generation, 1)).toISOString().slice(0, 10);
  yield ["ipv4-address-space.xml", [ianaText(4, day)]];
  yield ["ipv6-unicast-address-assignments.xml", [ianaText(6, day)]];
  for (const registry of registries) {
    const networks = (families: readonly (4 | 6)[], text: NetworkText) =>
      mapped(networksOf(registry, settings, families), (network) => text(registry, network, holders));
    const holders = 2 + Math.floor(registry.share * settings.objects * 0.05);
    const organisations = numbered(holders, (at) =>
      registry.name === "arin"
        ? arinHolder("org", orgHandle(registry, at), at)
        : rpslOrganisation(registry, at),
    );
    yield [
      `delegated-${registry.name}-extended-${day.replaceAll("-", "")}`,
      statistics(registry, day, settings, holders),
    ];
    switch (registry.name) {
      case "arin": {
        const customers = numbered(holders, (at) => arinHolder("customer", customerHandle(at), at));
        yield [
          "arin_db.xml.gz",
          chained(
            ['<bulkwhois xmlns="http://www.arin.net/bulkwhois/core/v1">\n'],
            ...[organisations, customers, networks([4, 6], arinNet)],
            ["</bulkwhois>\n"],
          ),
        ];
        break;
      }
      case "lacnic":
        yield ["lacnic.db.gz", networks([4, 6], lacnicNetwork)];
        break;
      case "afrinic":
        yield ["afrinic.db.gz", chained(organisations, networks([4, 6], rpslNetwork))];
        break;
      default: {
        const name = registry.source.toLowerCase();
        yield [`${name}.db.inetnum.gz`, networks([4], rpslNetwork)];
        yield [`${name}.db.inet6num.gz`, networks([6], rpslNetwork)];
        yield [`${name}.db.organisation.gz`, organisations];
      }
    }
  }
}

function* chained(...parts: readonly Iterable<string>[]): Generator<string> {
  for (const part of parts) yield* part;
}

function* mapped<From>(values: Iterable<From>, to: (value: From) => string): Generator<string> {
  for (const value of values) yield to(value);
}

function* numbered(count: number, text: (at: number) => string): Generator<string> {
  for (let at = 0; at < count; at++) yield text(at);
}

/** An object in the written generation. */
interface Network {
  readonly hash: number;
  readonly family: 4 | 6;
  /** IPv4: the first address; IPv6: three groups of 16 bits behind the registry's. */
  readonly first: number;
  readonly groups: readonly [number, number, number];
  readonly prefixLength: number;
  readonly isAllocation: boolean;
  readonly edits: number;
}

const perAllocation = 32;

function* networksOf(
  registry: Registry,
  settings: Settings,
  families: readonly (4 | 6)[],
): Generator<Network> {
  const count = Math.max(1, Math.round(registry.share * settings.objects));
  const octets = octetsOf(registry.octets);
  const blocks = octets.slice(0, Math.ceil(count / 2500));
  for (let number = 0; number < count; number++) {
    const family = number % 8 === 7 ? 6 : 4;
    if (!families.includes(family)) continue;
    const hash = mix32(mix32(settings.seed) + number * registries.length + registries.indexOf(registry));
    const edits = editsOf(hash, settings);
    if (edits === null) continue;
    // Consecutive within its family, distributed over the blocks in turn.
    const at = family === 6 ? number >>> 3 : number - (number >>> 3);
    const within = family === 6 ? at : Math.floor(at / blocks.length);
    const allocation = Math.floor(within / perAllocation);
    const slot = within % perAllocation;
    // Every fourth divides the assignment before it.
    const isDivision = slot % 4 === 3;
    const shared = { hash, family, edits, isAllocation: slot === 0 } as const;
    const place = isDivision ? slot - 1 : slot;
    if (family === 6) {
      const prefixLength = slot === 0 ? 32 : isDivision ? 56 : 48;
      const groups = [(allocation * 2731) & 0xffff, place * 256, isDivision ? 256 : 0] as const;
      yield { ...shared, first: 0, groups, prefixLength };
    } else {
      const block = blocks[at % blocks.length]! * 2 ** 24;
      const first = block + ((allocation * 2731) % 4096) * 4096 + place * 128;
      const prefixLength = slot === 0 ? 20 : isDivision ? 29 : 25 + (mix32(hash ^ 1) % 4);
      yield { ...shared, first, groups: [0, 0, 0], prefixLength };
    }
  }
}

/** Number of changes of its holder until the generation; null: it does not exist. One in twenty appears later. */
function editsOf(hash: number, { generation, changedShare }: Settings): number | null {
  let isThere = mix32(hash ^ 0x51ed) % 20 !== 0;
  let edits = 0;
  for (let quarter = 1; quarter <= generation; quarter++) {
    const chance = mix32(hash ^ (quarter * 0x01000193));
    if (chance / 2 ** 32 >= changedShare) continue;
    if (!isThere || chance % 3 === 0) isThere = !isThere;
    else edits++;
  }
  return isThere ? edits : null;
}

const holderOf = ({ hash, edits }: Network) => mix32(hash ^ (edits * 0x9e37));
const isOfOrganisation = (network: Network) => holderOf(network) % 2 === 0;
const holderNumber = (network: Network, holders: number) => (holderOf(network) >>> 1) % holders;
const companyEnds = ["Ltd", "GmbH", "S.A.", "Networks", "R&D <Holdings>"];
const companyName = (number: number) => `Company ${number} ${companyEnds[number % companyEnds.length]}`;
const customerHandle = (number: number) => `C${String(number).padStart(8, "0")}`;

function countryOf({ countries }: Registry, { hash }: { readonly hash: number }): string {
  const all = countries.split(" ");
  return all[hash % all.length]!;
}

function orgHandle({ name, source }: Registry, number: number): string {
  if (name === "arin") return `GEN-${number}`;
  return name === "lacnic" ? `BR-GEN${number}-LACNIC` : `ORG-GEN${number}-${source}`;
}

const lastOf = ({ first, prefixLength }: Network) => first + 2 ** (32 - prefixLength) - 1;

/** Of the first address, or of the last. */
function ipv6Text({ ipv6 }: Registry, { groups, prefixLength }: Network, isLast = false): string {
  const first = [Number.parseInt(ipv6, 16), ...groups, 0, 0, 0, 0];
  const free = (at: number) => (isLast ? 0xffff >>> Math.min(16, Math.max(0, prefixLength - 16 * at)) : 0);
  return first.map((group, at) => (group | free(at)).toString(16)).join(":");
}

/** The text of an object; the number of organisations that hold all of a registry's. */
type NetworkText = (registry: Registry, network: Network, holders: number) => string;

const rpslNetwork: NetworkText = (registry, network, holders) => {
  const { family, first, prefixLength, hash } = network;
  const number = holderNumber(network, holders);
  const range =
    family === 4
      ? attribute("inetnum", `${ipv4Text(first)} - ${ipv4Text(lastOf(network))}`)
      : attribute("inet6num", `${ipv6Text(registry, network)}/${prefixLength}`);
  return [
    range,
    attribute("netname", `NET-${hash.toString(36).toUpperCase()}`),
    isOfOrganisation(network)
      ? attribute("org", orgHandle(registry, number))
      : attribute("descr", companyName(holderOf(network) % (40 * holders))),
    attribute("country", countryOf(registry, network)),
    attribute("status", network.isAllocation ? "ALLOCATED PA" : "ASSIGNED PA"),
    hash % 50 === 0 ? `${attribute("remarks", "see the ticket")}                inetnum: quoted\n+\n` : "",
    attribute("source", registry.source),
    "\n",
  ].join("");
};

function rpslOrganisation(registry: Registry, number: number): string {
  return [
    attribute("organisation", orgHandle(registry, number)),
    attribute("org-name", companyName(number)),
    attribute("country", countryOf(registry, { hash: number })),
    attribute("source", registry.source),
    "\n",
  ].join("");
}

/** Both families under `inetnum:`, blocks without their trailing zero octets, the owner in the object itself. */
const lacnicNetwork: NetworkText = (registry, network, holders) => {
  const { family, first, prefixLength } = network;
  const number = holderNumber(network, holders);
  const block =
    family === 4 ? shortBlockText(first, prefixLength) : `${ipv6Text(registry, network)}/${prefixLength}`;
  return [
    attribute("inetnum", block),
    attribute("status", network.isAllocation ? "allocated" : "reallocated"),
    attribute("owner", `Operações ${companyName(number)}`),
    isOfOrganisation(network) ? attribute("ownerid", orgHandle(registry, number)) : "",
    attribute("country", countryOf(registry, network)),
    attribute("created", "20120504"),
    attribute("source", registry.source),
    "\n",
  ].join("");
};

const arinNet: NetworkText = (registry, network, holders) => {
  const { family, first, prefixLength, hash } = network;
  const number = holderNumber(network, holders);
  const [startAddress, endAddress] =
    family === 4
      ? [paddedIpv4Text(first), paddedIpv4Text(lastOf(network))]
      : [ipv6Text(registry, network), ipv6Text(registry, network, true)];
  const block = netBlockText({
    ...{ startAddress, endAddress, prefixLength },
    lengthName: hash % 2 === 0 ? "cidrLength" : "cidrLenth",
    type: network.isAllocation ? "DA" : "S",
  });
  const holder = isOfOrganisation(network)
    ? element("orgHandle", orgHandle(registry, number))
    : element("customerHandle", customerHandle(number));
  return (
    `<net>\n  <handle>NET-${hash}</handle>\n  <name>NET-${hash}</name>\n  <netBlocks>${block}</netBlocks>\n  ` +
    `${holder}\n  <version>${family}</version>\n</net>\n`
  );
};

function arinHolder(tag: "org" | "customer", handle: string, number: number): string {
  const country = "<iso3166-1><code2>US</code2><code3>USA</code3><name>US</name></iso3166-1>";
  const parent = tag === "customer" ? "  <parentOrgHandle>GEN-0</parentOrgHandle>\n" : "";
  return `<${tag}>\n  ${country}\n  <handle>${handle}</handle>\n  ${element("name", companyName(number))}\n${parent}</${tag}>\n`;
}

/** Only the allocations; the summary comes first and counts them. */
function* statistics(
  registry: Registry,
  isoDay: string,
  settings: Settings,
  holders: number,
): Generator<string> {
  const { name } = registry;
  const day = isoDay.replaceAll("-", "");
  const lines = { 4: [] as string[], 6: [] as string[] };
  for (const network of networksOf(registry, settings, [4, 6])) {
    const { family, first, prefixLength, isAllocation, hash } = network;
    if (!isAllocation) continue;
    lines[family].push(
      delegationLine({
        ...{ registry: name, country: countryOf(registry, network), type: family === 4 ? "ipv4" : "ipv6" },
        start: family === 4 ? ipv4Text(first) : ipv6Text(registry, network),
        value: family === 4 ? 2 ** (32 - prefixLength) : prefixLength,
        ...{ day: "20120504", status: hash % 5 === 0 ? "assigned" : "allocated" },
        opaqueId: `gen-${holderNumber(network, holders)}`,
      }),
    );
  }
  yield versionLine({ registry: name, day, records: lines[4].length + lines[6].length });
  yield summaryLine(name, "ipv4", lines[4].length);
  yield summaryLine(name, "ipv6", lines[6].length);
  yield* chained(lines[4], lines[6]);
}

function ianaText(family: 4 | 6, updated: string): string {
  const status = "ALLOCATED" as const;
  const records = registries.flatMap(({ name, octets, ipv6 }): IanaRecord[] =>
    family === 6
      ? [{ prefix: `${ipv6}::/12`, designation: name, registry: name, status }]
      : octetsOf(octets).map((octet) => ({
          ...{ prefix: `${String(octet).padStart(3, "0")}/8`, designation: name, registry: name, status },
        })),
  );
  const id = family === 4 ? "ipv4-address-space" : "ipv6-unicast-address-assignments";
  return ianaFileText({ id, title: id, updated, records });
}

/** `2 77-79` → 2, 77, 78, 79. */
function octetsOf(text: string): readonly number[] {
  return text.split(" ").flatMap((part) => {
    const [first = Number.NaN, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
