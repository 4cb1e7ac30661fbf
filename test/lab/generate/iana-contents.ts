/** IANA's registries as files, each block counted as the importer must count it. */

import { type IanaRecord, ianaFileText } from "#ops/world/registry-text";
import {
  companyOctets,
  ipv4Octets,
  octetsOf,
  type RegionalRegistry,
  regionalRegistries,
} from "./address-blocks.ts";
import { fileDay } from "./dates.ts";
import type { FileTally } from "./file-tally.ts";
import type { GenerateSettings } from "./registry-plan.ts";
import type { TreeTally } from "./tree-tally.ts";

interface IanaWork {
  readonly settings: GenerateSettings;
  readonly tree: TreeTally;
  readonly file: FileTally;
}

export function* ianaIpv4File(work: IanaWork): Generator<string> {
  const blocks = ianaIpv4Blocks();
  tally(work, 4, blocks);
  yield ianaFileText({
    id: "ipv4-address-space",
    title: "IPv4 Address Space",
    updated: fileDay(work.settings.generation),
    records: [...blocks.map(({ record }) => record), ...faults(work, "300/8")],
  });
}

export function* ianaIpv6File(work: IanaWork): Generator<string> {
  const blocks = ianaIpv6Blocks();
  tally(work, 6, blocks);
  yield ianaFileText({
    id: "ipv6-unicast-address-assignments",
    title: "IPv6 Global Unicast Address Space",
    updated: fileDay(work.settings.generation),
    records: [...blocks.map(({ record }) => record), ...faults(work, "2a00::/200")],
  });
}

function tally({ tree, file }: IanaWork, family: 4 | 6, blocks: readonly IanaBlock[]): void {
  for (const { ignored, isHeld } of blocks) {
    if (ignored !== null) file.ignore("record", ignored);
    else {
      file.keep("record");
      tree.ianaBlock(family, isHeld);
    }
  }
}

function faults({ settings, file }: IanaWork, prefix: string): readonly IanaBlock["record"][] {
  if (!settings.faults) return [];
  file.malformed("record");
  return [{ prefix, designation: "Nowhere", registry: null, status: "ALLOCATED" }];
}

// IANA's registries for the generated world: every /8 of IPv4, the blocks of IPv6, as they really are given out.

/** A record, and what the importer does with it. */
interface IanaBlock {
  readonly record: IanaRecord;
  /** Null when it is kept. */
  readonly ignored: string | null;
  /** A company holds it. */
  readonly isHeld: boolean;
}

const names: Readonly<Record<RegionalRegistry, string>> = {
  afrinic: "AFRINIC",
  apnic: "APNIC",
  arin: "ARIN",
  lacnic: "LACNIC",
  ripencc: "RIPE NCC",
};

/** In the order of addresses, 256 of them. */
function ianaIpv4Blocks(): readonly IanaBlock[] {
  const blocks = new Map<number, IanaBlock>();
  const set = (octet: number, record: Omit<IanaRecord, "prefix">, isHeld: boolean) => {
    const prefix = `${String(octet).padStart(3, "0")}/8`;
    const ignored = record.status === "RESERVED" ? "status reserved" : null;
    blocks.set(octet, { record: { prefix, ...record }, ignored, isHeld });
  };
  for (const octet of octetsOf("0-255")) set(octet, reserved(octet), false);
  for (const registry of regionalRegistries) {
    const { given, legacy } = ipv4Octets[registry];
    const designation = names[registry];
    for (const octet of octetsOf(given)) set(octet, { designation, registry, status: "ALLOCATED" }, false);
    for (const octet of octetsOf(legacy)) {
      set(octet, { designation: `Administered by ${designation}`, registry, status: "LEGACY" }, false);
    }
  }
  for (const [octet, registry, designation] of companyOctets) {
    set(octet, { designation, registry, status: "LEGACY" }, true);
  }
  return octetsOf("0-255").map((octet) => blocks.get(octet) as IanaBlock);
}

function reserved(octet: number): Omit<IanaRecord, "prefix"> {
  const designation =
    octet >= 240 ? "Future use" : octet >= 224 ? "Multicast" : "IANA - Local Identification";
  return { designation, registry: null, status: "RESERVED" };
}

const ipv6Prefixes: Readonly<Record<RegionalRegistry, string>> = {
  ripencc: "2001:600::/23 2001:800::/22 2001:1400::/22 2003::/18 2a00::/12 2a10::/12",
  apnic: "2001:200::/23 2001:e00::/23 2001:8000::/19 2400::/12 2410::/12",
  arin: "2001:400::/23 2001:1800::/23 2600::/12 2610::/23 2620::/23 2630::/12",
  lacnic: "2001:1200::/23 2800::/12",
  afrinic: "2001:4200::/23 2c00::/12",
};

function ianaIpv6Blocks(): readonly IanaBlock[] {
  const given = regionalRegistries.flatMap((registry) =>
    ipv6Prefixes[registry].split(" ").map((prefix) => ({
      record: { prefix, designation: names[registry], registry, status: "ALLOCATED" as const },
      ignored: null,
      isHeld: false,
    })),
  );
  return [
    ...given,
    {
      record: { prefix: "2002::/16", designation: "6to4", registry: null, status: "ALLOCATED" },
      ignored: "not given to a registry",
      isHeld: false,
    },
    {
      record: { prefix: "3f00::/9", designation: "IANA", registry: null, status: "RESERVED" },
      ignored: "status reserved",
      isHeld: false,
    },
  ];
}
