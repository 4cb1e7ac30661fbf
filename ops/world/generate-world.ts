/**
 * The seeded generator: organisations are drawn one after the other until the sites are used up, each with
 * its place, its provider (not always one of its own country) and its ranges; then the plan gets addresses.
 * The same settings give the same world on every machine.
 */

import { UsageError } from "#core/errors";
import { formatAddress } from "#core/ip/address";
import { layOut, type PlacedHost, type PlannedHost } from "./lay-out.ts";
import type { World, WorldCrawler, WorldSite } from "./model.ts";
import { NameGiver } from "./names.ts";
import { type Endpoint, type NetworkModel, rttBetween, unitVector } from "./network-model.ts";
import { distanceKm, exchangeCities, type Place, places } from "./places.ts";
import { planIpv6 } from "./plan-ipv6.ts";
import { type Provider, RegistryPlan } from "./plan-registry.ts";
import { SeededRandom } from "./seeded-random.ts";

export interface WorldSettings {
  readonly seed: number;
  readonly sites: number;
  readonly crawlers: number;
}

/** Bounds of what the generator is asked for; beyond them the planned /8s would not do. */
export const worldLimits = { sites: 100_000, crawlers: 1_000 } as const;

/** Share of organisations whose range is registered with a provider of another country than it is used in. */
const misfiledShare = 0.15;

/** Share of partners that came because a neighbour was one. */
const neighbourShare = 0.5;

export function generateWorld(settings: WorldSettings): World {
  refuseBadSettings(settings);
  const draft = new WorldDraft(settings);
  draft.drawCrawlers();
  draft.drawSites();
  return draft.finish();
}

function refuseBadSettings({ seed, sites, crawlers }: WorldSettings): void {
  const check = (name: string, value: number, low: number, high: number) => {
    if (Number.isInteger(value) && value >= low && value <= high) return;
    throw new UsageError(`world: ${name} is ${value}: must be a whole number from ${low} to ${high}`);
  };
  check("seed", seed, 0, 2 ** 32 - 1);
  check("sites", sites, 1, worldLimits.sites);
  check("crawlers", crawlers, 1, worldLimits.crawlers);
}

/** What a host has besides its address: where it really is. */
interface HostDraft {
  readonly place: number;
  readonly network: number;
  readonly latitude: number;
  readonly longitude: number;
  readonly lastMileMs: number;
}

class WorldDraft {
  readonly #settings: WorldSettings;
  readonly #random: SeededRandom;
  readonly #names: NameGiver;
  readonly #plan: RegistryPlan;
  readonly #partners: { readonly provider: Provider; readonly holder: number }[] = [];
  readonly #crawlers: (HostDraft & { readonly name: string })[] = [];
  readonly #sites: (HostDraft & { readonly host: string })[] = [];

  constructor(settings: WorldSettings) {
    this.#settings = settings;
    this.#random = new SeededRandom(settings.seed);
    this.#names = new NameGiver(this.#random);
    this.#plan = new RegistryPlan(this.#random, this.#names, settings.sites);
  }

  /**
   * Partners: every place once, the larger ones likelier first, before any place has two. Some come because
   * a neighbour is one already, so that close runners-up are as common as in measured fleets.
   */
  drawCrawlers(): void {
    let free = [...places];
    for (let index = 0; index < this.#settings.crawlers; index++) {
      if (free.length === 0) free = [...places];
      const place = this.#placeForPartner(free);
      free.splice(free.indexOf(place), 1);
      const provider = this.#random.pick(this.#plan.providersIn(place.country));
      const name = this.#names.crawler(place.name);
      this.#crawlers.push({ ...this.#hostAt(place, provider.network, 1.2), name });
      const holder = this.#plan.addHolder(`${name} partner library`, place.country, provider.registry);
      const host: PlannedHost = { type: "crawler", index, offset: this.#random.integer(2, 6), unary: false };
      this.#plan.assign({ provider, city: place.name, holder, departments: [[host]] });
      this.#partners.push({ provider, holder });
    }
  }

  drawSites(): void {
    while (this.#sites.length < this.#settings.sites) this.#drawOrganisation();
  }

  finish(): World {
    const { subnets: ipv4, hosts } = layOut(this.#plan.blocks);
    const ipv6 = planIpv6({
      firstIndex: ipv4.length,
      providers: this.#plan.providers,
      partners: this.#partners,
      registryHolder: (registry) => this.#plan.registryHolder(registry),
    });
    const subnets = [...ipv4, ...ipv6];
    const model: NetworkModel = {
      seed: this.#settings.seed,
      exchanges: places
        .filter((place) => exchangeCities.includes(place.name))
        .map((place) => unitVector(place.latitude, place.longitude)),
    };
    const placed = { site: new Map<number, PlacedHost>(), crawler: new Map<number, PlacedHost>() };
    for (const host of hosts) placed[host.type].set(host.index, host);
    const crawlers = this.#crawlers.map((draft, index): WorldCrawler => {
      const { address, subnet } = required(placed.crawler.get(index));
      const country = subnets[subnet]?.country ?? null;
      return { name: draft.name, address: text(address), place: draft.place, country, subnet };
    });
    const sites = this.#sites.map((draft, index): WorldSite => {
      const { address, subnet } = required(placed.site.get(index));
      const country = subnets[subnet]?.country ?? null;
      return { ...this.#siteTraits(draft), address: text(address), subnet, country };
    });
    const crawlerEnds = this.#crawlers.map((draft, index) => endpointOf(draft, index));
    const ends = new Map(crawlers.map((crawler, index) => [crawler.address, required(crawlerEnds[index])]));
    sites.forEach((site, index) => {
      // Sites that share an address are one machine: the first of them says where it is.
      if (!ends.has(site.address)) {
        ends.set(site.address, endpointOf(required(this.#sites[index]), crawlers.length + index));
      }
    });
    const { seed } = this.#settings;
    const name = `generated(seed ${seed}, ${sites.length} sites, ${crawlers.length} crawlers)`;
    return {
      name,
      seed,
      places,
      holders: this.#plan.holders,
      subnets,
      crawlers,
      sites,
      rttMs: (crawlerIndex, address) => {
        const from = crawlerEnds[crawlerIndex];
        const to = ends.get(address);
        return from && to ? rttBetween(model, from, to) : null;
      },
      crawlerRttMs: (a, b) =>
        a === b ? 0 : rttBetween(model, required(crawlerEnds[a]), required(crawlerEnds[b])),
    };
  }

  #placeForPartner(free: readonly Place[]): Place {
    const random = this.#random;
    const nearest = (place: Place) =>
      Math.min(...this.#crawlers.map((crawler) => distanceKm(place, crawler)));
    if (this.#crawlers.length > 0 && random.chance(neighbourShare)) {
      const neighbour = random.pick(this.#crawlers);
      return free.reduce((best, one) =>
        distanceKm(one, neighbour) < distanceKm(best, neighbour) ? one : best,
      );
    }
    const [first, second] = [0, 1].map(() => random.pickWeighted(free, (place) => place.weight ** 1.4)) as [
      Place,
      Place,
    ];
    return nearest(first) >= nearest(second) ? first : second;
  }

  #drawOrganisation(): void {
    const random = this.#random;
    const home = drawPlace(random);
    const misfiled = random.chance(misfiledShare);
    const provider = this.#providerFor(misfiled ? drawPlace(random) : home);
    const name = this.#names.organisation();
    const holderWith = this.#holdersOf(name, provider);
    const spread = random.chance(0.12);
    for (let left = drawDepartments(random); left > 0 && this.#sites.length < this.#settings.sites; ) {
      const together = spread ? 1 : random.integer(1, left);
      const place = spread ? this.#otherPlace(home) : home;
      const registeredWith = spread && !misfiled ? this.#providerFor(place) : provider;
      const network = misfiled ? this.#providerFor(place).network : registeredWith.network;
      const departments = Array.from({ length: together }, () => this.#drawDepartment(place, network));
      this.#plan.assign({
        provider: registeredWith,
        city: place.name,
        holder: holderWith(registeredWith),
        departments,
      });
      left -= together;
    }
  }

  /** An organisation is another holder, a subsidiary, at each registry: their records do not know each other. */
  #holdersOf(name: string, home: Provider): (provider: Provider) => number {
    const byRegistry = new Map<string, number>();
    return ({ registry, country }) => {
      const suffix = registry === home.registry ? "" : ` ${country}`;
      const holder = byRegistry.get(registry) ?? this.#plan.addHolder(`${name}${suffix}`, country, registry);
      byRegistry.set(registry, holder);
      return holder;
    };
  }

  #drawDepartment(place: Place, network: number): PlannedHost[] {
    const random = this.#random;
    const left = this.#settings.sites - this.#sites.length;
    const count = Math.min(left, random.chance(0.82) ? 1 : random.integer(2, 5));
    const spot = this.#hostAt(place, network, 4);
    let offset = random.integer(1, 5);
    return Array.from({ length: count }, (_, position) => {
      if (position > 0 && !random.chance(0.2)) offset += random.integer(1, 3);
      const index = this.#sites.length;
      this.#sites.push({
        ...spot,
        host: this.#names.host(index),
        lastMileMs: spot.lastMileMs + random.next(),
      });
      return { type: "site", index, offset, unary: random.chance(0.1) };
    });
  }

  #providerFor(place: Place): Provider {
    return this.#random.pick(this.#plan.providersIn(place.country));
  }

  /** Mostly elsewhere in the same country, sometimes anywhere. */
  #otherPlace(home: Place): Place {
    const sameCountry = places.filter((place) => place.country === home.country);
    return this.#random.chance(0.6) ? this.#random.pick(sameCountry) : drawPlace(this.#random);
  }

  /** In or around the city; the last mile is exponential with the given mean. */
  #hostAt(place: Place, network: number, lastMileMeanMs: number): HostDraft {
    return {
      place: places.indexOf(place),
      network,
      latitude: place.latitude + 0.5 * this.#random.normal(),
      longitude: place.longitude + 0.5 * this.#random.normal(),
      lastMileMs: 0.2 + Math.min(40, this.#random.exponential(lastMileMeanMs)),
    };
  }

  #siteTraits(
    draft: HostDraft & { readonly host: string },
  ): Omit<WorldSite, "address" | "subnet" | "country"> {
    const random = this.#random;
    const local = places[draft.place]?.language ?? "en";
    return {
      host: draft.host,
      place: draft.place,
      language: random.chance(0.85) ? local : "en",
      pages: 3 + Math.floor(Math.min(9, random.exponential(2.5))),
      bandwidthKbps: Math.round(Math.min(100_000, Math.max(1_000, 10_000 * Math.exp(random.normal())))),
      serverDelayMs: Math.round(Math.min(80, 2 + random.exponential(8)) * 10) / 10,
    };
  }
}

function drawPlace(random: SeededRandom): Place {
  return random.pickWeighted(places, (place) => place.weight);
}

/** Ranges of one organisation: most have one, few have many. */
function drawDepartments(random: SeededRandom): number {
  const draw = random.next();
  if (draw < 0.6) return 1;
  if (draw < 0.8) return 2;
  return random.integer(3, draw < 0.95 ? 5 : 10);
}

function endpointOf(draft: HostDraft, id: number): Endpoint {
  const country = places.findIndex((place) => place.country === places[draft.place]?.country);
  const { network, lastMileMs } = draft;
  return { id, ...unitVector(draft.latitude, draft.longitude), country, network, lastMileMs };
}

function text(value: number): string {
  return formatAddress({ family: 4, value });
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("world: a host was planned but not placed");
  return value;
}
