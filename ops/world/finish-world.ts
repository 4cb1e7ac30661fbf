/** From a draft to a world: the plan gets addresses, hosts their traits, pairs of hosts their round-trip times. */
import { formatAddress } from "#core/ip/address";
import { layOut, type PlacedHost, type PlannedHost, placedByType } from "./lay-out.ts";
import type { SplitLeaf, World, WorldCrawler, WorldSite, WorldSubnet } from "./model.ts";
import { type Place, places, type RegionalRegistry } from "./places.ts";
import { NameGiver, type Provider, RegistryPlan, registryNames } from "./plan-registry.ts";
import { roundTrips } from "./round-trips.ts";
import { SeededRandom } from "./seeded-random.ts";

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

// The IPv6 side of a generated registry: a /12 per registry, a /32 per provider, a /48 per crawler's partner. No site has an
// IPv6 address, but dumps hold such objects and importers must cope.

/** First 16 bits of the /12 that IANA gave each registry. */
const blocks: Readonly<Record<RegionalRegistry, bigint>> = {
  apnic: 0x2400n,
  arin: 0x2600n,
  lacnic: 0x2800n,
  ripencc: 0x2a00n,
  afrinic: 0x2c00n,
};

interface Ipv6Plan {
  /** The index of the first of these in the world's subnets. */
  readonly firstIndex: number;
  readonly providers: readonly Provider[];
  readonly partners: readonly { readonly provider: Provider; readonly holder: number }[];
  readonly registryHolder: (registry: RegionalRegistry) => number;
}

/** In address order, parents first. */
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

// A generated world while it is drawn: hosts with their true places, and the registry that is planned for them.

/** The true location of a host. */
export interface HostDraft {
  /** Index in `places`. */
  readonly place: number;
  readonly network: number;
  readonly latitude: number;
  readonly longitude: number;
  readonly lastMileMs: number;
}

interface CrawlerDraft extends HostDraft {
  readonly name: string;
}

interface SiteDraft extends HostDraft {
  readonly host: string;
}

/** A further address of a site's name. */
interface ReplicaDraft extends HostDraft {
  readonly site: number;
}

/** A leaf in two places, named by a site in it; its second part begins `boundary` addresses after its first. */
interface SplitDraft {
  readonly site: number;
  readonly boundary: number;
  readonly places: readonly [number, number];
}

/** The mean last-mile delay in ms; some hosts far from any exchange have another. */
const lastMileMeanMs = 0.4;
const remoteShare = 0.25;
const remoteLastMileMs = 12;
const mostLastMileMs = 40;

/** The standard deviation of hosts' distance from their city, in degrees; some are in towns around it. */
const cityDegrees = 0.3;
const townShare = 0.35;
const townDegrees = 3;

export class WorldDraft {
  readonly seed: number;
  readonly random: SeededRandom;
  readonly names: NameGiver;
  readonly plan: RegistryPlan;
  readonly partners: { readonly provider: Provider; readonly holder: number }[] = [];
  readonly crawlers: CrawlerDraft[] = [];
  readonly sites: SiteDraft[] = [];
  readonly replicas: ReplicaDraft[] = [];
  readonly splits: SplitDraft[] = [];
  /** Sites drawn so far of each kind of odd organisation. */
  readonly oddSites = { geoDns: 0, splitLeaves: 0 };
  readonly #wantedSites: number;

  constructor({ seed, sites }: { readonly seed: number; readonly sites: number }) {
    this.seed = seed;
    this.random = new SeededRandom(seed);
    this.names = new NameGiver(this.random);
    this.plan = new RegistryPlan(this.random, this.names, sites);
    this.#wantedSites = sites;
  }

  get sitesLeft(): number {
    return this.#wantedSites - this.sites.length;
  }

  drawPlace(): Place {
    return this.random.pickWeighted(places, (place) => place.weight);
  }

  /** A provider of the country; the first ones are large. */
  providerFor(place: Place): Provider {
    const providers = this.plan.providersIn(place.country);
    return this.random.pickWeighted(providers, ({ size }) => size);
  }

  /** In the city or around it. */
  hostAt(place: Place, network: number): HostDraft {
    const { random } = this;
    const degrees = random.chance(townShare) ? townDegrees : cityDegrees;
    const meanMs = random.chance(remoteShare) ? remoteLastMileMs : lastMileMeanMs;
    return {
      place: places.indexOf(place),
      network,
      latitude: place.latitude + degrees * random.normal(),
      longitude: place.longitude + degrees * random.normal(),
      lastMileMs: 0.1 + Math.min(mostLastMileMs, random.exponential(meanMs)),
    };
  }

  /** One more site at that spot; its host for the plan, `offset` addresses into its leaf. */
  addSite(spot: HostDraft, { offset }: Pick<PlannedHost, "offset">): PlannedHost {
    const index = this.sites.length;
    const host = this.names.host(index);
    this.sites.push({ ...spot, host, lastMileMs: spot.lastMileMs + this.random.next() });
    return { type: "site", index, offset, unary: this.random.chance(0.1) };
  }

  /** An organisation is another holder, a subsidiary, at each registry, because their records are separate. */
  holdersOf(name: string, home: Provider): (provider: Provider) => number {
    const byRegistry = new Map<string, number>();
    return ({ registry, country }) => {
      const suffix = registry === home.registry ? "" : ` ${country}`;
      const holder = byRegistry.get(registry) ?? this.plan.addHolder(`${name}${suffix}`, country, registry);
      byRegistry.set(registry, holder);
      return holder;
    };
  }
}
