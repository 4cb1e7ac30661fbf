/** From a draft to a world: the plan gets addresses, hosts their traits, pairs of hosts their round-trip times. */
import { formatAddress } from "#core/ip/address";
import {
  layOut,
  type PlacedHost,
  type PlannedBlock,
  type PlannedSubnet,
  placedByType,
  sizeOf,
} from "./lay-out.ts";
import type {
  BlockedCrawler,
  HeadBehaviour,
  SplitLeaf,
  World,
  WorldCrawler,
  WorldSite,
  WorldSubnet,
} from "./model.ts";
import { places, type RegionalRegistry } from "./places.ts";
import { type Provider, registryNames } from "./plan-registry.ts";
import { roundTrips } from "./round-trips.ts";
import { hashUnit } from "./seeded-random.ts";
import type { SiteDraft, WorldDraft } from "./world-draft.ts";

export function finishWorld(draft: WorldDraft, oddities: WorldOddities): World {
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
      head: headBehaviourOf(draft.seed, index, oddities),
      blocks: blockedCrawlers({ seed: draft.seed, site: index, crawlers: crawlers.length }, oddities),
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
  relieveBlocks(draft.plan.blocks);
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
    anycast: site.instances.length === 0 ? null : site.instances.map(({ place }) => place),
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

// How a site of a generated world treats probes: drawn from its seed and position alone.

function headBehaviourOf(seed: number, site: number, oddities: WorldOddities): HeadBehaviour {
  const { headFromEdge, headRefused, headSilent } = oddities;
  const draw = hashUnit(seed ^ 0x68656164, site, 0);
  if (draw < headFromEdge) return "edge";
  if (draw < headFromEdge + headRefused) return "refused";
  return draw < headFromEdge + headRefused + headSilent ? "silent" : "answered";
}

/** Of the crawlers, those that a blocking site does not take: about a third, half of them reset. */
const blockedShare = 0.33;

function blockedCrawlers(
  { seed, site, crawlers }: { readonly seed: number; readonly site: number; readonly crawlers: number },
  oddities: WorldOddities,
): BlockedCrawler[] {
  if (hashUnit(seed ^ 0x626c6f63, site, 0) >= oddities.blocking) return [];
  const blocked: BlockedCrawler[] = [];
  for (let crawlerIndex = 0; crawlerIndex < crawlers; crawlerIndex++) {
    const draw = hashUnit(seed ^ 0x626c6f63, site, crawlerIndex + 1);
    if (draw < blockedShare)
      blocked.push({ crawlerIndex, how: draw < blockedShare / 2 ? "refused" : "timeout" });
  }
  return blocked;
}

// Very large worlds: a registry's /8s are filled by chance, and one may be asked to hold more than it can. Then
// all that the registry gave out is spread anew, the largest first, each into the emptiest of its /8s.

/** Addresses planned in a /8 at most: alignment needs room of its own. */
const mostInBlock = 2 ** 23;

/** Addresses of a national registry's part at most; beyond that it gets several parts. */
const mostInPart = 2 ** 21;

/** Changes nothing where every block has room. */
export function relieveBlocks(blocks: readonly PlannedBlock[]): void {
  const registries = new Set(blocks.map(({ subnet }) => subnet.registry));
  for (const registry of registries) {
    const own = blocks.filter(({ subnet }) => subnet.registry === registry).map(({ subnet }) => subnet);
    if (own.some(({ children }) => filledBy(children) > mostInBlock)) spreadAnew(own);
  }
}

function spreadAnew(blocks: readonly PlannedSubnet[]): void {
  const parts = blocks.flatMap((block) => block.children.splice(0)).flatMap(splitNational);
  const sized = parts.map((part) => ({ part, size: sizeOf(part) })).sort((a, b) => b.size - a.size);
  const filled = blocks.map((block) => ({ block, size: 0 }));
  for (const { part, size } of sized) {
    const emptiest = filled.reduce((best, one) => (one.size < best.size ? one : best));
    emptiest.block.children.push(part);
    emptiest.size += size;
  }
}

function splitNational(subnet: PlannedSubnet): PlannedSubnet[] {
  if (subnet.kind !== "national" || subnet.children.length < 2 || sizeOf(subnet) <= mostInPart)
    return [subnet];
  const half = Math.ceil(subnet.children.length / 2);
  const [first, second] = [subnet.children.slice(0, half), subnet.children.slice(half)];
  return [
    ...splitNational({ ...subnet, children: first }),
    ...splitNational({ ...subnet, name: `${subnet.name}-${half}`, children: second }),
  ];
}

function filledBy(children: readonly PlannedSubnet[]): number {
  return children.reduce((sum, child) => sum + sizeOf(child), 0);
}

// The IPv6 side of a generated registry: a /12 per registry, a /32 for each provider, a /48 for each
// crawler's partner. No site has an IPv6 address, but dumps do hold such objects, and importers must cope.

/** First 16 bits of the /12 that IANA gave each registry. */
const blocks: Readonly<Record<RegionalRegistry, bigint>> = {
  apnic: 0x2400n,
  arin: 0x2600n,
  lacnic: 0x2800n,
  ripencc: 0x2a00n,
  afrinic: 0x2c00n,
};

interface Ipv6Plan {
  /** Position that the first of these will have in the world's subnets. */
  readonly firstIndex: number;
  readonly providers: readonly Provider[];
  readonly partners: readonly { readonly provider: Provider; readonly holder: number }[];
  readonly registryHolder: (registry: RegionalRegistry) => number;
}

/** In the order of addresses, parents first. */
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

/**
 * What live code must cope with besides ordinary organisations: addresses announced from several places, names
 * that resolve by who asks, ranges used in two places, sites that treat probes in their own way. Each is off
 * unless asked for, as a share of the world's sites from 0 to 1.
 */
export interface WorldOddities {
  /** At an address that is announced from several places; holders have whole ranges of them. */
  readonly anycast: number;
  /** Under a name with two to four addresses in different subnets. */
  readonly geoDns: number;
  /** In a range whose halves are used in different cities. */
  readonly splitLeaves: number;
  /** HEAD is answered by an edge near the crawler. */
  readonly headFromEdge: number;
  /** HEAD is answered with 405. */
  readonly headRefused: number;
  /** HEAD gets no answer. */
  readonly headSilent: number;
  /** Connections from some crawlers are reset or get no answer. */
  readonly blocking: number;
}

export const noOddities: WorldOddities = {
  anycast: 0,
  geoDns: 0,
  splitLeaves: 0,
  headFromEdge: 0,
  headRefused: 0,
  headSilent: 0,
  blocking: 0,
};
