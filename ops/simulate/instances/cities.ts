/**
 * Instances from a model of networks over cities (`city-networks.ts`), for the delegation simulator. Nothing was
 * tuned on them: neither the constants of `nearest` nor the model itself, which was written down once.
 *
 * The tree is as registries have it, and tells what it tells: a network's blocks are cut into pools that serve
 * some of its cities, customers keep ranges in several cities, and what is registered is the country of the
 * holder's home.
 */
import type { SimulatedHost, SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import { SeededRandom } from "../../world/seeded-random.ts";
import { drawNetworks, type Network, type Networks, type Spot } from "./city-networks.ts";
import { type City, cities, kilometres, type Region } from "./city-table.ts";
import { type DrawnHost, type InstanceSize, instanceOf } from "./drawn-instance.ts";

/** Of sites, by where they are hosted; cities with an exchange point draw more. */
const hosted: Readonly<Record<Region, number>> = {
  africa: 0.4,
  asia: 1,
  europe: 3,
  "latin-america": 0.8,
  "north-america": 4,
};
const exchangeDraw = 4;
/** Sites that lie in an earlier site's range. */
const sharedRangeShare = 0.12;
/** Sites of customers with an entry of their own in the registry. */
const registeredShare = 0.35;

interface CityHost extends SimulatedHost, DrawnHost {
  readonly spot: Spot;
}

export function citiesInstance({ crawlers, sites, seed }: InstanceSize): SimulationInstance {
  const random = new SeededRandom(seed ^ 0x63697479);
  const networks = drawNetworks(random, seed);
  const registry = new Registry(random, networks);
  const fleet = Array.from({ length: crawlers }, (_, index) => registry.crawler(index));
  const targets = Array.from({ length: sites }, (_, index) => registry.site(index));
  const roundTrips = new RoundTrips(networks);
  return instanceOf({ crawlers: fleet, targets, rttMs: (a, b) => roundTrips.rttMs(a, b) });
}

/** Who holds which ranges. */
class Registry {
  readonly #random: SeededRandom;
  readonly #networks: Networks;
  readonly #cityWeights: readonly number[];
  readonly #poolsOf = new Map<number, readonly string[]>();
  readonly #ranges = new Map<string, CityHost[]>();
  readonly #customers: { readonly name: string; readonly homes: number[]; sites: number }[] = [];

  constructor(random: SeededRandom, networks: Networks) {
    this.#random = random;
    this.#networks = networks;
    this.#cityWeights = cities.map(
      (city, index) =>
        city.millions ** 0.6 * hosted[city.region] * (networks.exchanges.has(index) ? exchangeDraw : 1),
    );
  }

  /** A library or a university: a range of its own, seldom with the largest networks. */
  crawler(index: number): CityHost {
    const city = this.#drawCity(cities.map((one) => one.millions ** 0.5 * hosted[one.region]));
    const spot = this.#spotIn(city, { global: 0.2, regional: 2, edge: 1 });
    const org = `partner ${index}`;
    return {
      ...this.#hostAt(spot, { leaf: org, org, country: cities[city]!.country }),
      lastMileMs: 0.2 + this.#random.exponential(1),
    };
  }

  site(index: number): CityHost {
    const random = this.#random;
    const customer = random.chance(registeredShare) ? this.#drawCustomer() : null;
    const city = customer ? this.#cityOf(customer.homes) : this.#drawCity(this.#cityWeights);
    const spot = this.#spotIn(city, { global: 1, regional: 1, edge: 2 });
    const key = `${spot.network} ${spot.city}`;
    const neighbours = this.#ranges.get(key) ?? [];
    this.#ranges.set(key, neighbours);
    if (customer === null && neighbours.length > 0 && random.chance(sharedRangeShare)) {
      return random.pick(neighbours);
    }
    const network = this.#networks.networks[spot.network]!;
    const host: CityHost = {
      ...this.#hostAt(spot, {
        leaf: `site ${index}`,
        org: customer?.name ?? network.name,
        country: cities[customer ? customer.homes[0]! : network.cities[0]!]!.country,
      }),
      lastMileMs: random.chance(0.15) ? 1 + random.exponential(7) : 0.1 + random.exponential(0.4),
    };
    if (customer === null) neighbours.push(host);
    return host;
  }

  #drawCity(weights: readonly number[]): number {
    return this.#random.pickWeighted(
      cities.map((_, index) => index),
      (index) => weights[index]!,
    );
  }

  #spotIn(city: number, weightOf: Readonly<Record<Network["kind"], number>>): Spot {
    const { presentIn, networks } = this.#networks;
    const here = presentIn[city]!;
    // Where nobody is present, the host is at the end of a line to the nearest city where somebody is.
    if (here.length === 0) return this.#spotIn(this.#nearestServed(cities[city]!), weightOf);
    return { city, network: this.#random.pickWeighted(here, (index) => weightOf[networks[index]!.kind]) };
  }

  #nearestServed(city: City): number {
    const served = cities.flatMap((one, index) =>
      this.#networks.presentIn[index]!.length > 0 ? [{ one, index }] : [],
    );
    const apartKm = ({ one }: { one: City }) => kilometres(one, city);
    return served.reduce((best, one) => (apartKm(one) < apartKm(best) ? one : best)).index;
  }

  /** The more sites a customer has, the likelier the next is its; one in eight is of somebody new. */
  #drawCustomer(): { readonly name: string; readonly homes: number[] } {
    const random = this.#random;
    if (this.#customers.length === 0 || random.chance(1 / 8)) {
      const homes = [this.#drawCity(this.#cityWeights)];
      this.#customers.push({ name: `customer ${this.#customers.length}`, homes, sites: 0 });
    }
    const customer =
      this.#customers.at(-1)!.sites === 0
        ? this.#customers.at(-1)!
        : random.pickWeighted(this.#customers, ({ sites }) => sites);
    customer.sites += 1;
    if (random.chance(0.15)) customer.homes.push(this.#drawCity(this.#cityWeights));
    return customer;
  }

  #cityOf(homes: readonly number[]): number {
    return this.#random.chance(0.6) ? homes[0]! : this.#random.pick(homes);
  }

  #hostAt(spot: Spot, of: { leaf: string; org: string; country: string }): SimulatedHost & { spot: Spot } {
    const pools = this.#poolsIn(spot.network);
    const own = pools[this.#networks.networks[spot.network]!.cities.indexOf(spot.city)]!;
    const pool = this.#random.chance(0.2) ? this.#random.pick(pools) : own;
    return { path: ["root", ...pool.split("/"), of.leaf], org: of.org, cc: of.country, spot };
  }

  /** By city of the network: /8, block and pool. Cities share blocks, and often pools. */
  #poolsIn(network: number): readonly string[] {
    const known = this.#poolsOf.get(network);
    if (known) return known;
    const random = this.#random;
    const { cities: at, name } = this.#networks.networks[network]!;
    const { region } = cities[at[0]!]!;
    const blocks = Array.from(
      { length: 1 + Math.floor(at.length / 4) },
      (_, block) => `${region} ${random.integer(1, 16)}/${name} block ${block}`,
    );
    const poolsOfBlock = Math.max(1, Math.round(at.length / blocks.length / 2));
    const pools = at.map(() => `${random.pick(blocks)}/pool ${random.integer(1, poolsOfBlock)}`);
    this.#poolsOf.set(network, pools);
    return pools;
  }
}

/** Between two networks' cities worked out once. */
class RoundTrips {
  readonly #networks: Networks;
  readonly #known = new Map<number, number>();

  constructor(networks: Networks) {
    this.#networks = networks;
  }

  rttMs(a: CityHost, b: CityHost): number {
    return this.#betweenMs(a.spot, b.spot) + a.lastMileMs + b.lastMileMs;
  }

  #betweenMs(a: Spot, b: Spot): number {
    const [first, second] = [numberOf(a), numberOf(b)];
    const key = Math.min(first, second) * 1e6 + Math.max(first, second);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const rttMs = this.#networks.onewayMs(a, b) + this.#networks.onewayMs(b, a);
    this.#known.set(key, rttMs);
    return rttMs;
  }
}

const numberOf = ({ network, city }: Spot) => network * cities.length + city;
