/** Registries that an import would leave with suspiciously less than they had: mostly an incomplete file. */
import type { Registry } from "#coordinator/subnets/subnet";
import type { RegistryChange } from "./database/change-breakdown.ts";

export interface Shrinkage {
  readonly registry: Registry;
  /** Of what the registry has in the tree in force, the share that goes. */
  readonly lostSubnetsShare: number;
  readonly lostIpv4Share: number;
  readonly lostIpv6Share: number;
}

/** A quarter's honest changes stay below a few percent (test/rir-import/afrinic-years.test.ts). */
export const suspiciousShare = 0.1;
/** A registry of a handful of subnets loses a tenth of them by one. */
const fewestSubnets = 20;

/** Those of which more than that share of the subnets, or of the covered addresses, goes. */
export function shrunkRegistries(
  registries: readonly RegistryChange[],
  moreThanShare: number = suspiciousShare,
): readonly Shrinkage[] {
  return registries
    .filter(({ before }) => before !== null && before.subnets >= fewestSubnets)
    .map(shrinkageOf)
    .filter(
      ({ lostSubnetsShare, lostIpv4Share, lostIpv6Share }) =>
        Math.max(lostSubnetsShare, lostIpv4Share, lostIpv6Share) > moreThanShare,
    );
}

function shrinkageOf({ registry, before, after, removed }: RegistryChange): Shrinkage {
  const lost = (was = 0, is = 0) => (was > 0 ? Math.max(0, was - is) / was : 0);
  return {
    registry,
    lostSubnetsShare: before ? removed / before.subnets : 0,
    lostIpv4Share: lost(before?.ipv4Addresses, after?.ipv4Addresses),
    lostIpv6Share: lost(before?.ipv6Slash48s, after?.ipv6Slash48s),
  };
}
