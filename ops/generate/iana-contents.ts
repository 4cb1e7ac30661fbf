/** IANA's registries as files, each block counted as the importer must count it. */
import { fileDay } from "./dates.ts";
import type { FileTally } from "./file-tally.ts";
import { type IanaBlock, ianaIpv4Blocks, ianaIpv6Blocks } from "./iana-registries.ts";
import { ianaFileText } from "./iana-text.ts";
import type { GenerateSettings } from "./registry-plan.ts";
import type { TreeTally } from "./tree-tally.ts";

export interface IanaWork {
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
