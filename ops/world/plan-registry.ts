/**
 * The registry of a generated world, before it has addresses:
 *
 *   /8 (IANA → RIR) ─ [national registry] ─ provider's allocation ─ [pool per city] ─ organisation ─ [department]
 *
 * It is as misleading as a real registry: organisations have departments in several places, ranges are used in another
 * country than registered or are not CIDR blocks, sites share a range or an address, and hosts are registered as ranges
 * of one address.
 */
import type { PlannedBlock, PlannedHost, PlannedSubnet } from "./lay-out.ts";
import type { WorldHolder } from "./model.ts";
import { nationalRegistries, type Place, places, type RegionalRegistry, registryOf } from "./places.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** First octets that each registry may assign here: the registry's real /8s without special-purpose ranges. */
const firstOctets: Readonly<Record<RegionalRegistry, readonly number[]>> = {
  afrinic: [41, 102, 105, 154, 196, 197],
  apnic: [27, 36, 42, 49, 58, 60, 101, 103, 110, 112, 116, 120, 180, 202, 210, 218],
  arin: [8, 23, 24, 50, 63, 66, 68, 72, 75, 96, 104, 107, 173, 184, 206, 216],
  lacnic: [177, 179, 181, 186, 189, 190, 200, 201],
  ripencc: [2, 5, 31, 37, 46, 62, 77, 80, 84, 89, 93, 109, 176, 185, 194, 212],
};

/** The share of ranges that come from a provider's pool, in cities where it has one. */
const poolUsedShare = 0.75;

/** The probability that a range starts a pool in a city without one. */
const poolMadeShare = 0.4;

export interface Provider {
  readonly holder: number;
  readonly country: string;
  readonly registry: RegionalRegistry;
  /** The routed network, whose hosts share its peerings. */
  readonly network: number;
  readonly allocations: readonly PlannedSubnet[];
  readonly pools: Map<string, PlannedSubnet>;
  /** The number of its customers, as a weight within its country. */
  readonly size: number;
}

/** A department's hosts, which share one leaf. */
interface Department {
  readonly hosts: readonly PlannedHost[];
  /** How many addresses the leaf has. Default: drawn. */
  readonly size?: number;
}

/** Builds the plan. `assign` adds a range with hosts to a provider. */
export class RegistryPlan {
  readonly holders: WorldHolder[] = [];
  readonly blocks: PlannedBlock[] = [];
  readonly providers: Provider[] = [];
  readonly #random: SeededRandom;
  readonly #names: NameGiver;
  readonly #national = new Map<string, PlannedSubnet>();
  readonly #byCountry = new Map<string, Provider[]>();
  #numbers = 0;

  constructor(random: SeededRandom, names: NameGiver, expectedSites: number) {
    this.#random = random;
    this.#names = names;
    this.#planBlocks(expectedSites);
    this.#planProviders(expectedSites);
  }

  addHolder(name: string, country: string | null, registry: RegionalRegistry): number {
    return this.holders.push({ name, country, registry }) - 1;
  }

  /** Returns the holder that represents the registry itself. */
  registryHolder(registry: RegionalRegistry): number {
    return this.holders.findIndex((holder) => holder.registry === registry && holder.country === null);
  }

  providersIn(country: string): readonly Provider[] {
    return this.#byCountry.get(country) ?? [];
  }

  /** Adds an organisation's range to the provider's allocation, or to its pool for the city. */
  assign(assignment: {
    provider: Provider;
    city: string;
    holder: number;
    departments: readonly Department[];
  }): void {
    const { provider, holder } = assignment;
    const leaves = assignment.departments.map((department) => this.#leaf(provider, holder, department));
    const parent = this.#poolFor(provider, assignment.city);
    const [only] = leaves;
    if (leaves.length === 1 && only && this.#random.chance(0.7)) {
      parent.children.push(only);
    } else {
      parent.children.push(this.#subnet("assignment", provider, holder, "ORG", leaves));
    }
  }

  #leaf(provider: Provider, holder: number, { hosts, size: given }: Department): PlannedSubnet {
    const leaf = this.#subnet("assignment", provider, holder, "NET", []);
    if (given !== undefined) return { ...leaf, size: given, hosts };
    const lowest = hosts.reduce((most, host) => Math.max(most, host.offset), 0) + 2;
    // LACNIC's and ARIN's files can only express CIDR blocks. Elsewhere one range in six is not a CIDR block.
    const odd = !["arin", "lacnic"].includes(provider.registry) && this.#random.chance(1 / 6);
    const sizes = odd ? [24, 48, 96, 160, 200] : [8, 16, 32, 64, 128, 256];
    const size = this.#random.pick(sizes.filter((candidate) => candidate >= lowest));
    return { ...leaf, size, hosts };
  }

  #poolFor(provider: Provider, city: string): PlannedSubnet {
    const pool = provider.pools.get(city);
    if (pool && this.#random.chance(poolUsedShare)) return pool;
    const allocation = this.#random.pick(provider.allocations);
    if (pool || !this.#random.chance(poolMadeShare)) return allocation;
    const created = this.#subnet("pool", provider, provider.holder, "POOL", []);
    provider.pools.set(city, created);
    allocation.children.push(created);
    return created;
  }

  #planBlocks(expectedSites: number): void {
    for (const [registry, octets] of Object.entries(firstOctets) as [RegionalRegistry, number[]][]) {
      const wanted = Math.min(octets.length, 3 + Math.ceil(expectedSites / 8000));
      const holder = this.addHolder(registryNames[registry], null, registry);
      for (const firstOctet of octets.slice(0, wanted)) {
        const name = `${registry.toUpperCase()}-${firstOctet}`;
        this.blocks.push({
          firstOctet,
          subnet: {
            name,
            kind: "iana",
            holder,
            country: null,
            registry,
            size: 2 ** 24,
            children: [],
            hosts: [],
          },
        });
      }
    }
  }

  #planProviders(expectedSites: number): void {
    const countries = [...new Set(places.map((place) => place.country))];
    const total = places.reduce((sum, place) => sum + place.weight, 0);
    for (const country of countries) {
      const here = places.filter((place) => place.country === country);
      const share = here.reduce((sum, place) => sum + place.weight, 0) / total;
      const count = Math.min(24, 2 + Math.round(0.9 * Math.sqrt(share * expectedSites)));
      const made = Array.from({ length: count }, (_, rank) =>
        this.#planProvider(country, here, 1 / Math.sqrt(1 + rank)),
      );
      this.#byCountry.set(country, made);
    }
  }

  #planProvider(country: string, here: readonly Place[], size: number): Provider {
    const registry = registryOf(country);
    const city = this.#random.pickWeighted(here, (place) => place.weight).name;
    const holder = this.addHolder(this.#names.provider(city), country, registry);
    const network = this.providers.length;
    const base = { holder, country, registry, network, size, pools: new Map<string, PlannedSubnet>() };
    const allocations = Array.from({ length: this.#random.chance(0.4) ? 2 : 1 }, () => {
      const allocation = {
        ...this.#subnet("allocation", base, holder, "ALLOC", []),
        size: 2 ** this.#random.integer(10, 13),
      };
      this.#registryBlockFor(country, registry).children.push(allocation);
      return allocation;
    });
    const provider = { ...base, allocations };
    this.providers.push(provider);
    return provider;
  }

  /** Returns a /8 of the registry, or the national registry's part of one. */
  #registryBlockFor(country: string, registry: RegionalRegistry): PlannedSubnet {
    const blocks = this.blocks.filter((block) => block.subnet.registry === registry);
    const nationalName = nationalRegistries.get(country);
    if (nationalName === undefined) return this.#random.pick(blocks).subnet;
    const known = this.#national.get(country);
    if (known) return known;
    const holder = this.addHolder(nationalName, country, registry);
    const made: PlannedSubnet = {
      ...this.#subnet("national", { country, registry }, holder, "NIR", []),
      size: 2 ** 16,
    };
    this.#national.set(country, made);
    this.#random.pick(blocks).subnet.children.push(made);
    return made;
  }

  #subnet(
    kind: PlannedSubnet["kind"],
    owner: { readonly country: string; readonly registry: RegionalRegistry },
    holder: number,
    tag: string,
    children: PlannedSubnet[],
  ): PlannedSubnet {
    const name = `${owner.country}-${tag}-${++this.#numbers}`;
    const { registry } = owner;
    // ARIN's nets have no country of their own, only that of their organisation.
    const country = registry === "arin" ? (this.holders[holder]?.country ?? owner.country) : owner.country;
    return { name, kind, holder, country, registry, size: 0, children, hosts: [] };
  }
}

export const registryNames: Readonly<Record<RegionalRegistry, string>> = {
  afrinic: "AFRINIC",
  apnic: "APNIC",
  arin: "ARIN",
  lacnic: "LACNIC",
  ripencc: "RIPE NCC",
};

// Makes unique names from the seed for the emulated Internet's organisations, hosts and crawlers.

const adjectives = `
amber blue bright calm cedar clear copper coral crimson early eastern emerald fair golden granite green grey hazel
high ivory jade large laurel little lunar maple marble merry mild misty new noble northern oaken olive opal pearl
plain quiet rapid red river rosy round royal ruby sandy scarlet silver slate solar southern spring steady stone
summer sunny swift tall teal upper vivid western white wide winter young
`;

const nouns = `
academy archive arena bakery bank bay bridge brewery canal castle choir clinic coast college cottage council dairy
depot farm ferry field forest forum foundry gallery garden gazette grove guild harbour hill hospital hotel institute
island journal kitchen lake lantern library lighthouse market meadow mill museum nursery observatory orchard park
pier pharmacy press quarry railway school shop society stadium station studio theatre tower valley village vineyard
works workshop
`;

const kinds = ["Ltd", "Inc", "Group", "Foundation", "Cooperative", "Society", "Holding", "Services"];

const adjectiveList = adjectives.trim().split(/\s+/);
const nounList = nouns.trim().split(/\s+/);

/** Returns only names that it has not returned before. */
export class NameGiver {
  readonly #random: SeededRandom;
  readonly #given = new Set<string>();

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  organisation(): string {
    const random = this.#random;
    const words = `${capital(random.pick(adjectiveList))} ${capital(random.pick(nounList))}`;
    return this.#unique(`${words} ${random.pick(kinds)}`, " ");
  }

  provider(city: string): string {
    return this.#unique(
      `${city} ${this.#random.pick(["Telecom", "Networks", "Online", "Hosting", "Broadband", "Datacom"])}`,
      " ",
    );
  }

  /** Example: `silver-harbour-0042.example`. Uses only domains that RFC 2606 reserves. */
  host(index: number): string {
    const domain = this.#random.chance(0.7) ? "example" : "test";
    const number = String(index + 1).padStart(4, "0");
    return `${this.#random.pick(adjectiveList)}-${this.#random.pick(nounList)}-${number}.${domain}`;
  }

  /** Returns for example `sao-paulo`, then `sao-paulo-2`, … */
  crawler(city: string): string {
    return this.#unique(city.toLowerCase().replaceAll(" ", "-"), "-");
  }

  #unique(name: string, separator: string): string {
    let candidate = name;
    for (let number = 2; this.#given.has(candidate); number++) candidate = `${name}${separator}${number}`;
    this.#given.add(candidate);
    return candidate;
  }
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
