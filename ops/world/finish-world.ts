/** Turns a draft into a world: the plan gets addresses, hosts their traits, and pairs of hosts their round-trip times. */
import { formatAddress } from "#core/ip/address";
import { layOut, type PlacedHost, placedByType } from "./lay-out.ts";
import type { SplitLeaf, World, WorldCrawler, WorldSite, WorldSubnet } from "./model.ts";
import { places, type RegionalRegistry } from "./places.ts";
import { type Provider, registryNames } from "./plan-registry.ts";
import { roundTrips } from "./round-trips.ts";
import type { SiteDraft, WorldDraft } from "./world-draft.ts";

export function finishWorld(draft: WorldDraft): World {
  const { subnets, placed } = layOutDraft(draft);
  const crawlers = draft.crawlers.map(({ name, place }, index): WorldCrawler => {
    return { name, place, ...located(placed.crawler.get(index), subnets) };
  });
  const replicas = draft.replicas.map((_, index) => located(placed.replica.get(index), subnets).address);
  const replicasOf = new Map<number, string[]>();
  draft.replicas.forEach(({ site }, index) => {
    replicasOf.set(site, [...(replicasOf.get(site) ?? []), required(replicas[index])]);
  });
  const sites = draft.sites.map((site, index): WorldSite => {
    const where = located(placed.site.get(index), subnets);
    return {
      ...where,
      ...traitsOf(site, draft),
      addresses: [where.address, ...(replicasOf.get(index) ?? [])],
    };
  });
  return {
    name: `generated(seed ${draft.seed}, ${sites.length} sites, ${crawlers.length} crawlers)`,
    seed: draft.seed,
    places,
    holders: draft.plan.holders,
    subnets,
    crawlers,
    sites,
    splitLeaves: splitLeaves(draft, sites, subnets),
    ...roundTrips(draft, { crawlers, sites, replicas }),
  };
}

function layOutDraft(draft: WorldDraft): { subnets: WorldSubnet[]; placed: ReturnType<typeof placedByType> } {
  const { subnets, hosts } = layOut(draft.plan.blocks);
  const ipv6 = planIpv6({
    firstIndex: subnets.length,
    providers: draft.plan.providers,
    partners: draft.partners,
    registryHolder: (registry) => draft.plan.registryHolder(registry),
  });
  return { subnets: [...subnets, ...ipv6], placed: placedByType(hosts) };
}

function located(host: PlacedHost | undefined, subnets: readonly WorldSubnet[]) {
  const { address, subnet } = required(host);
  return {
    address: formatAddress({ family: 4, value: address }),
    subnet,
    country: subnets[subnet]?.country ?? null,
  };
}

function traitsOf(site: SiteDraft, { random }: WorldDraft) {
  const local = places[site.place]?.language ?? "en";
  return {
    host: site.host,
    place: site.place,
    language: random.chance(0.85) ? local : "en",
    pages: 3 + Math.floor(Math.min(9, random.exponential(2.5))),
    bandwidthKbps: Math.round(Math.min(100_000, Math.max(1_000, 10_000 * Math.exp(random.normal())))),
    serverDelayMs: Math.round(Math.min(80, 2 + random.exponential(8)) * 10) / 10,
  } as const;
}

function splitLeaves(
  draft: WorldDraft,
  sites: readonly WorldSite[],
  subnets: readonly WorldSubnet[],
): SplitLeaf[] {
  return draft.splits.map((split) => {
    const { subnet } = required(sites[split.site]);
    const first = Number(required(subnets[subnet]).range.first);
    return { subnet, boundary: first + split.boundary, places: split.places };
  });
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("world: a host was planned but not placed");
  return value;
}

// The IPv6 part of a generated registry: a /12 per registry, a /32 per provider, and a /48 per crawler's partner. No
// site has an IPv6 address, but dumps contain such objects, so importers must handle them.

/** First 16 bits of the /12 that IANA gave each registry. */
const blocks: Readonly<Record<RegionalRegistry, bigint>> = {
  apnic: 0x2400n,
  arin: 0x2600n,
  lacnic: 0x2800n,
  ripencc: 0x2a00n,
  afrinic: 0x2c00n,
};

interface Ipv6Plan {
  /** The index in the world's subnets that the first of these subnets gets. */
  readonly firstIndex: number;
  readonly providers: readonly Provider[];
  readonly partners: readonly { readonly provider: Provider; readonly holder: number }[];
  readonly registryHolder: (registry: RegionalRegistry) => number;
}

/** Returns the subnets in address order, parents first. */
function planIpv6(plan: Ipv6Plan): WorldSubnet[] {
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
