/**
 * The IPv6 side of a generated registry: a /12 per registry, a /32 for each provider, a /48 for each
 * crawler's partner. No site has an IPv6 address, but dumps do hold such objects, and importers must cope.
 */
import type { WorldSubnet } from "./model.ts";
import type { RegionalRegistry } from "./places.ts";
import { type Provider, registryNames } from "./plan-registry.ts";

/** First 16 bits of the /12 that IANA gave each registry. */
const blocks: Readonly<Record<RegionalRegistry, bigint>> = {
  apnic: 0x2400n,
  arin: 0x2600n,
  lacnic: 0x2800n,
  ripencc: 0x2a00n,
  afrinic: 0x2c00n,
};

export interface Ipv6Plan {
  /** Position that the first of these will have in the world's subnets. */
  readonly firstIndex: number;
  readonly providers: readonly Provider[];
  readonly partners: readonly { readonly provider: Provider; readonly holder: number }[];
  readonly registryHolder: (registry: RegionalRegistry) => number;
}

/** In the order of addresses, parents first. */
export function planIpv6(plan: Ipv6Plan): WorldSubnet[] {
  const subnets: WorldSubnet[] = [];
  for (const [registry, start] of Object.entries(blocks) as [RegionalRegistry, bigint][]) {
    const first = start << 112n;
    const block = plan.firstIndex + subnets.length;
    subnets.push({
      range: { family: 6, first, last: first + (1n << 116n) - 1n },
      parent: null,
      holder: plan.registryHolder(registry),
      country: null,
      registry,
      kind: "iana",
      name: `${registryNames[registry]} IPv6`,
    });
    const providers = plan.providers.filter((provider) => provider.registry === registry);
    providers.forEach((provider, position) => {
      subnets.push(
        ...providerSubnets({
          plan,
          provider,
          block,
          first: first + (BigInt(position + 1) << 96n),
          index: plan.firstIndex + subnets.length,
        }),
      );
    });
  }
  return subnets;
}

function providerSubnets(place: {
  readonly plan: Ipv6Plan;
  readonly provider: Provider;
  readonly block: number;
  readonly first: bigint;
  readonly index: number;
}): WorldSubnet[] {
  const { plan, provider, block, first, index } = place;
  const { registry, country } = provider;
  const allocation: WorldSubnet = {
    range: { family: 6, first, last: first + (1n << 96n) - 1n },
    parent: block,
    holder: provider.holder,
    country,
    registry,
    kind: "allocation",
    name: `${country}-V6-${provider.network}`,
  };
  const partners = plan.partners.filter((partner) => partner.provider === provider);
  const assignments = partners.map(({ holder }, position): WorldSubnet => {
    const start = first + (BigInt(position + 1) << 80n);
    const range = { family: 6, first: start, last: start + (1n << 80n) - 1n } as const;
    return {
      ...allocation,
      range,
      parent: index,
      holder,
      kind: "assignment",
      name: `${allocation.name}-${position + 1}`,
    };
  });
  return [allocation, ...assignments];
}
