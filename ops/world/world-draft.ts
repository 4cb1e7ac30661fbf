/** A generated world while it is being drawn: hosts with their true places, and the registry planned for them. */
import type { PlannedHost } from "./lay-out.ts";
import { type Place, places } from "./places.ts";
import { NameGiver, type Provider, RegistryPlan } from "./plan-registry.ts";
import { SeededRandom } from "./seeded-random.ts";

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

export interface SiteDraft extends HostDraft {
  readonly host: string;
}

/** An additional address of a site's name. */
interface ReplicaDraft extends HostDraft {
  readonly site: number;
}

/** A leaf in two places, identified by a site in it. Its second part begins `boundary` addresses after its first. */
interface SplitDraft {
  readonly site: number;
  readonly boundary: number;
  readonly places: readonly [number, number];
}

/** The mean last-mile delay in ms. Some hosts are far from any exchange and have a different mean. */
const lastMileMeanMs = 0.4;
const remoteShare = 0.25;
const remoteLastMileMs = 12;
const mostLastMileMs = 40;

/** The standard deviation of hosts' distance from their city, in degrees. Some hosts are in towns around it. */
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
  /** How many sites of each kind of odd organisation have been drawn so far. */
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

  /** Draws a provider of the country. The first providers are large. */
  providerFor(place: Place): Provider {
    const providers = this.plan.providersIn(place.country);
    return this.random.pickWeighted(providers, ({ size }) => size);
  }

  /** Draws a host in the city or around it. */
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

  /** Adds a site at that spot. Returns its host for the plan, `offset` addresses into its leaf. */
  addSite(spot: HostDraft, { offset }: Pick<PlannedHost, "offset">): PlannedHost {
    const index = this.sites.length;
    const host = this.names.host(index);
    this.sites.push({ ...spot, host, lastMileMs: spot.lastMileMs + this.random.next() });
    return { type: "site", index, offset, unary: this.random.chance(0.1) };
  }

  /** At each registry an organisation is a different holder, a subsidiary, because registries' records are separate. */
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
