/**
 * An import's state as a record per subnet, for comparisons. Subnets are numbered from 0 through both families, IPv4
 * first, in the order of the tree.
 */

import { rangeAt } from "#coordinator/place/subnets/range-columns";
import { type Registry, registries } from "#coordinator/place/subnets/subnet";
import { unpackCountry } from "#coordinator/place/subnets/subnet-rows";
import type { IpRange } from "#core/ip/range";
import type { FamilyState, RegistryState } from "#rir-import/tree/registry-state";

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
