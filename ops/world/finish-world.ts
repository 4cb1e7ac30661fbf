/** From a draft to a world: the plan gets addresses, hosts their traits, pairs of hosts their round-trip times. */
import { formatAddress } from "#core/ip/address";
import { layOut, type PlacedHost, placedByType } from "./lay-out.ts";
import type { SplitLeaf, World, WorldCrawler, WorldSite, WorldSubnet } from "./model.ts";
import type { WorldOddities } from "./oddities.ts";
import { places } from "./places.ts";
import { planIpv6 } from "./plan-ipv6.ts";
import { relieveBlocks } from "./relieve-blocks.ts";
import { roundTrips } from "./round-trips.ts";
import { blockedCrawlers, headBehaviourOf } from "./site-manners.ts";
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
