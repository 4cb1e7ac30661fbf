/** Writes registry files into a temporary folder and reads them. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rangeAt } from "#coordinator/place/subnets/range-columns";
import { type Registry, registries, unpackCountry } from "#coordinator/place/subnets/subnet";
import { formatRange, type IpRange } from "#core/ip/range";
import { readState } from "#rir-import/check";
import type { FamilyState, RegistryState } from "#rir-import/tree/registry-state";
import { temporaryFolder } from "../support/temporary-folder.ts";

export interface SourceFolder {
  readonly path: string;
  /** Returns the path. */
  write(name: string, content: string | Buffer): string;
  remove(): void;
}

export function sourceFolder(): SourceFolder {
  const path = temporaryFolder("rir-sources-");
  return {
    path,
    write: (name, content) => {
      const file = join(path, name);
      writeFileSync(file, content);
      return file;
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

export interface ShownSubnet {
  readonly range: string;
  readonly parent: string | null;
  readonly holder: string | null;
  readonly country: string | null;
  readonly registry: string;
  readonly name: string;
}

/** The state of these files, read in the order given. */
export async function stateOf(
  files: Readonly<Record<string, string>>,
): Promise<{ readonly state: RegistryState; readonly subnets: readonly ShownSubnet[] }> {
  const folder = sourceFolder();
  try {
    const paths = Object.entries(files).map(([name, content]) => folder.write(name, content));
    const { state } = await readState(paths, () => {});
    return { state, subnets: shownSubnets(state) };
  } finally {
    folder.remove();
  }
}

function shownSubnets(state: RegistryState): readonly ShownSubnet[] {
  const all = [...wantedSubnets(state)];
  return all.map((subnet) => ({
    range: formatRange(subnet.range),
    parent: subnet.parentOrdinal === null ? null : formatRange(all[subnet.parentOrdinal]!.range),
    holder: subnet.holder === null ? null : state.holders.at(subnet.holder).key,
    country: subnet.country,
    registry: subnet.registry,
    name: subnet.name,
  }));
}

export interface WantedSubnet {
  readonly ordinal: number;
  readonly range: IpRange;
  readonly parentOrdinal: number | null;
  /** An index into `holders`, or null. */
  readonly holder: number | null;
  readonly country: string | null;
  readonly registry: Registry;
  readonly name: string;
}

/** Both families with the number of their first subnet. */
function familiesOf(
  state: RegistryState,
): readonly { readonly family: FamilyState; readonly offset: number }[] {
  return [
    { family: state.ipv4, offset: 0 },
    { family: state.ipv6, offset: state.ipv4.columns.count },
  ];
}

export function* wantedSubnets(state: RegistryState): Generator<WantedSubnet> {
  for (const { family, offset } of familiesOf(state)) {
    for (let place = 0; place < family.columns.count; place += 1)
      yield subnetAt(state, family, offset, place);
  }
}

function subnetAt(state: RegistryState, family: FamilyState, offset: number, place: number): WantedSubnet {
  const parent = family.parents[place] as number;
  const holder = family.holders[place] as number;
  return {
    ordinal: offset + place,
    range: rangeAt(family.columns, place),
    parentOrdinal: parent < 0 ? null : offset + parent,
    holder: holder < 0 ? null : holder,
    country: unpackCountry(family.countries[place] as number),
    registry: registries[family.registries[place] as number] as Registry,
    name: state.texts.textAt(family.names[place] as number),
  };
}
