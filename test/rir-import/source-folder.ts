/** Writes registry files into a temporary folder and reads them. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatRange } from "#core/ip/range";
import { readState } from "#rir-import/check";
import type { RegistryState } from "#rir-import/tree/registry-state";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { wantedSubnets } from "./wanted-subnets.ts";

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
