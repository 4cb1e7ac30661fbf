/**
 * Which files a generated registry consists of: named, packed and encoded as the registries publish them.
 * A registry that got no objects has no files, a class without objects has none either.
 */
import type { Registry } from "#coordinator/subnets/subnet";
import type { SourceFormat } from "#rir-import/read/sniff";
import { compactDay, fileDay } from "./dates.ts";
import type { FileTally } from "./file-tally.ts";
import { ianaIpv4File, ianaIpv6File } from "./iana-contents.ts";
import {
  arinBulkData,
  type Content,
  lacnicDatabase,
  networkFile,
  organisationFile,
  wholeDatabase,
} from "./network-contents.ts";
import type { GenerateSettings, RegistryPlan } from "./registry-plan.ts";
import { statisticsFile } from "./statistics-contents.ts";
import type { TreeTally } from "./tree-tally.ts";

export interface RegistryFile {
  /** Without the ending of its packing. */
  readonly name: string;
  readonly format: SourceFormat;
  readonly registry: Registry;
  /** The registry publishes it compressed. */
  readonly isPacked: boolean;
  readonly encoding: "latin1" | "utf8";
  /** Lines end with CR LF. */
  readonly isCrLf: boolean;
  readonly statesDate: boolean;
  /** The texts that make up the file, in order; counts into the tallies on the way. */
  readonly texts: (tree: TreeTally, file: FileTally) => Generator<string>;
}

export function registryFiles(
  settings: GenerateSettings,
  plans: readonly RegistryPlan[],
): readonly RegistryFile[] {
  const iana = {
    format: "iana-xml",
    registry: "iana",
    isPacked: false,
    encoding: "utf8",
    isCrLf: false,
    statesDate: true,
  } as const;
  return [
    {
      ...iana,
      name: "ipv4-address-space.xml",
      texts: (tree, file) => ianaIpv4File({ settings, tree, file }),
    },
    {
      ...iana,
      name: "ipv6-unicast-address-assignments.xml",
      texts: (tree, file) => ianaIpv6File({ settings, tree, file }),
    },
    ...plans
      .filter((plan) => plan.organisations > 0)
      .flatMap((plan) => [statistics(plans, plan), ...databaseFiles(plans, plan)]),
  ];
}

function statistics(plans: readonly RegistryPlan[], plan: RegistryPlan): RegistryFile {
  const { registry, settings } = plan;
  return {
    name: `delegated-${registry}-extended-${compactDay(fileDay(settings.generation))}`,
    format: "delegated",
    registry,
    isPacked: registry === "apnic" || registry === "ripencc",
    encoding: "latin1",
    isCrLf: false,
    statesDate: true,
    texts: (tree, file) => statisticsFile({ plans, plan, tree, file }),
  };
}

interface DatabaseFile {
  readonly name: string;
  readonly content: Content;
  readonly encoding?: "latin1" | "utf8";
  readonly isCrLf?: boolean;
  readonly format?: SourceFormat;
}

function databaseFiles(plans: readonly RegistryPlan[], plan: RegistryPlan): readonly RegistryFile[] {
  return filesOf(plan).map(({ name, content, encoding = "latin1", isCrLf = false, format = "rpsl" }) => ({
    name,
    format,
    registry: plan.registry,
    isPacked: true,
    encoding,
    isCrLf,
    statesDate: false,
    texts: (tree, file) => content({ plans, plan, tree, file }),
  }));
}

function filesOf(plan: RegistryPlan): readonly DatabaseFile[] {
  switch (plan.registry) {
    case "ripencc":
      return splitFiles(plan, "ripe.db", {});
    case "apnic":
      return splitFiles(plan, "apnic.db", { encoding: "utf8", isCrLf: true });
    case "afrinic":
      return [{ name: "afrinic.db", content: wholeDatabase }];
    case "lacnic":
      return [{ name: "lacnic.db", content: lacnicDatabase }];
    case "arin":
      return [{ name: "arin_db.xml", content: arinBulkData, encoding: "utf8", format: "arin-xml" }];
  }
}

/** CR LF, where it is asked for, in the IPv6 file only. */
function splitFiles(
  plan: RegistryPlan,
  name: string,
  options: Pick<DatabaseFile, "encoding" | "isCrLf">,
): readonly DatabaseFile[] {
  const { isCrLf = false, ...encoding } = options;
  const inetnum = { ...encoding, name: `${name}.inetnum`, content: networkFile(4) };
  const inet6num = { ...encoding, name: `${name}.inet6num`, content: networkFile(6), isCrLf };
  const organisation = { ...encoding, name: `${name}.organisation`, content: organisationFile };
  return [
    ...(plan.ipv4.length > 0 ? [inetnum] : []),
    ...(plan.ipv6.length > 0 ? [inet6num] : []),
    organisation,
  ];
}
