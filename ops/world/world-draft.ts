/** A generated world while it is drawn: hosts with their true places, and the registry that is planned for them. */
import type { PlannedHost } from "./lay-out.ts";
import { NameGiver } from "./names.ts";
import { type Place, places } from "./places.ts";
import { type Provider, RegistryPlan } from "./plan-registry.ts";
import { SeededRandom } from "./seeded-random.ts";

/** Where a host really is. */
export interface HostDraft {
  /** Position in `places`. */
  readonly place: number;
  readonly network: number;
  readonly latitude: number;
  readonly longitude: number;
  readonly lastMileMs: number;
}

export interface CrawlerDraft extends HostDraft {
  readonly name: string;
}

export interface SiteDraft extends HostDraft {
  readonly host: string;
  /** Where its address is announced besides; empty for nearly all. */
  readonly instances: readonly HostDraft[];
}

/** A further address of a site's name. */
export interface ReplicaDraft extends HostDraft {
  readonly site: number;
}

/** A leaf of two places, named by a site in it; `boundary` addresses after its first the second part begins. */
export interface SplitDraft {
  readonly site: number;
  readonly boundary: number;
  readonly places: readonly [number, number];
}

/** Mean of a site's last mile in ms. */
const siteLastMileMs = 4;

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
  readonly oddSites = { anycast: 0, geoDns: 0, splitLeaves: 0 };
  readonly #wantedSites: number;
  #networks = 0;

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

  providerFor(place: Place): Provider {
    return this.random.pick(this.plan.providersIn(place.country));
  }

  /** A network of its own, for hosts that are at no provider's. */
  newNetwork(): number {
    return this.plan.providers.length + this.#networks++;
  }

  /** In or around the city; the last mile is exponential with the given mean. */
  hostAt(place: Place, network: number, lastMileMeanMs = siteLastMileMs): HostDraft {
    return {
      place: places.indexOf(place),
      network,
      latitude: place.latitude + 0.5 * this.random.normal(),
      longitude: place.longitude + 0.5 * this.random.normal(),
      lastMileMs: 0.2 + Math.min(40, this.random.exponential(lastMileMeanMs)),
    };
  }

  /** One more site at that spot; its host for the plan, `offset` addresses into its leaf. */
  addSite(
    spot: HostDraft,
    { offset, instances = [] }: { readonly offset: number; readonly instances?: readonly HostDraft[] },
  ): PlannedHost {
    const index = this.sites.length;
    const host = this.names.host(index);
    this.sites.push({ ...spot, host, instances, lastMileMs: spot.lastMileMs + this.random.next() });
    return { type: "site", index, offset, unary: this.random.chance(0.1) };
  }

  /** An organisation is another holder, a subsidiary, at each registry: their records do not know each other. */
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
