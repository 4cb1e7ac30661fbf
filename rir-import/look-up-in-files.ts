/**
 * The chain of ranges that hold an address or a range, straight from registry files: what `lookup.ts` gives from
 * the database, without one. The files are read and nested once; each look-up then takes microseconds.
 */

import { compareSpecificity, rangeAt } from "#coordinator/subnets/range-columns";
import { registryAt, unpackCountry } from "#coordinator/subnets/subnet-rows";
import { SourceFileError } from "#core/errors";
import { formatRange, type IpRange } from "#core/ip/range";
import { readState } from "./check.ts";
import { type FoundSubnet, type LookUp, readAsked } from "./lookup.ts";
import type { OnProgress } from "./progress.ts";
import type { FileReport } from "./read/file-report.ts";
import { fileOf, type SourcePath } from "./read/open-source.ts";
import { HoldingRanges } from "./tree/holding-ranges.ts";
import type { FamilyState, RegistryState, StateSummary } from "./tree/registry-state.ts";

export interface FileLookUps {
  readonly files: readonly FileReport[];
  readonly summary: StateSummary;
  /** Throws UsageError when the text is neither an address nor a range. */
  lookUp(text: string): LookUp;
}

/** Throws SourceFileError for a file that is not what it claims to be, or when no file has a subnet. */
export async function openFileLookUps(
  paths: readonly SourcePath[],
  onProgress: OnProgress = () => {},
): Promise<FileLookUps> {
  const { files, state } = await readState(paths, onProgress);
  if (state.summary.subnets === 0)
    throw new SourceFileError(paths.map(fileOf).join(", "), null, "no subnets in these files");
  return { files, summary: state.summary, lookUp: lookUpsIn(state) };
}

/** Look-ups in a state that was read before. */
function lookUpsIn(state: RegistryState): FileLookUps["lookUp"] {
  const ipv4 = new HoldingRanges(state.ipv4.columns);
  const ipv6 = new HoldingRanges(state.ipv6.columns);
  return (text) => {
    const { range, asked } = readAsked(text);
    const family = range.family === 4 ? state.ipv4 : state.ipv6;
    const holding = (range.family === 4 ? ipv4 : ipv6).holdersOf(range);
    const chain = chainOf(family, holding);
    const inChain = new Set(chain);
    const found = (index: number) => foundSubnet(state, range.family, index);
    return {
      asked,
      chain: chain.map(found),
      crossing: holding.filter((index) => !inChain.has(index)).map(found),
    };
  };
}

/** The most specific of the holding ranges and its parents, top down: a parent of what holds it holds it too. */
function chainOf({ columns, parents }: FamilyState, holding: readonly number[]): readonly number[] {
  const chain: number[] = [];
  let next = holding.reduce(
    (best, index) => (best < 0 || compareSpecificity(columns, index, best) < 0 ? index : best),
    -1,
  );
  while (next >= 0) {
    chain.push(next);
    next = parents[next] as number;
  }
  return chain.reverse();
}

function foundSubnet(state: RegistryState, familyNumber: IpRange["family"], place: number): FoundSubnet {
  const family = familyNumber === 4 ? state.ipv4 : state.ipv6;
  const holderIndex = family.holders[place] as number;
  const holder = holderIndex < 0 ? null : state.holders.at(holderIndex);
  return {
    subnetId: null,
    range: formatRange(rangeAt(family.columns, place)),
    registry: registryAt(family.registries[place] as number),
    country: unpackCountry(family.countries[place] as number),
    name: state.texts.textAt(family.names[place] as number),
    holder: holder?.name ?? null,
    handle: holder?.handle ?? null,
    delegatedTo: null,
    addedIn: null,
  };
}
