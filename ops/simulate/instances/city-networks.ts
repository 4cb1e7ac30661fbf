/**
 * The Internet as networks with business relations, over fibre between cities: what the round trips in `cities.ts`
 * go through. Made by other rules than ops/world, which draws delays by distance:
 *
 * - fibre: the Gabriel graph of the cities, each stretch longer than the great circle, and some cables between
 *   large cities far apart; light takes 5 µs a kilometre;
 * - networks (autonomous systems): a few with points of presence the world over, transit of one region, and edge
 *   networks of one or a few cities. A newcomer buys transit where it is present already, the likelier from those who
 *   have most neighbours (preferential attachment, Barabási and Albert 1999);
 * - peering at exchange points between who is present there; the largest networks all peer;
 * - routes: customers' before peers' before providers', then the shortest (Gao and Rexford 2001). Such routes are
 *   valley-free. A network hands traffic over at the meeting point nearest to where it has it (hot potato), so that the way
 *   back is another one.
 */
import { hashUnit, type SeededRandom } from "../../world/seeded-random.ts";
import { type City, cities, kilometres, type Region } from "./city-table.ts";

export interface Network {
  readonly name: string;
  /** Positions in the table of cities; the first is its home. */
  readonly cities: number[];
  readonly kind: "global" | "regional" | "edge";
  /** Its own way between two cities by that of the fibre. */
  readonly haul: number;
}

export interface Networks {
  readonly networks: readonly Network[];
  /** By city: positions of the networks that are there. */
  readonly presentIn: readonly (readonly number[])[];
  /** Cities with an exchange point. */
  readonly exchanges: ReadonlySet<number>;
  /** One way, in ms, from a network's city to another's. */
  onewayMs(from: Spot, to: Spot): number;
  /** Networks on the way, both ends included. */
  route(from: number, to: number): readonly number[];
  /** What the second is to the first; null: no neighbour. */
  relation(of: number, other: number): Relation | null;
}

export type Relation = "provider" | "customer" | "peer";

export interface Spot {
  readonly network: number;
  readonly city: number;
}

const counts = { global: 7, regional: 48, edge: 190, cables: 16, exchanges: 15 } as const;
/** In glass. */
const msPerKm = 1 / 200;
/** What a handover between networks adds, one way. */
const handoverMs = 0.25;
const peeringShare = 0.35;

export function drawNetworks(random: SeededRandom, seed: number): Networks {
  const fibreMs = layFibre(random);
  const exchanges = new Set(drawCities(random, counts.exchanges, (city) => city.millions));
  const relations = new Relations(random, exchanges);
  for (let number = 0; number < counts.global; number++) relations.addGlobal();
  for (let number = 0; number < counts.regional; number++) relations.addRegional(fibreMs);
  for (let number = 0; number < counts.edge; number++) relations.addEdge(fibreMs);
  relations.peer();
  const { networks } = relations;
  const nextHops = networks.map((_, destination) => routesTo(relations, destination, seed));
  const route = (from: number, to: number) => {
    const on = [from];
    while (on.at(-1) !== to) on.push(nextHops[to]![on.at(-1)!]!);
    return on;
  };
  return {
    networks,
    presentIn: cities.map((_, city) =>
      networks.flatMap((network, index) => (network.cities.includes(city) ? [index] : [])),
    ),
    exchanges,
    route,
    relation: (of, other) => relations.relation(of, other),
    onewayMs: (from, to) => {
      let delayMs = 0;
      let { city } = from;
      const on = route(from.network, to.network);
      for (let hop = 1; hop < on.length; hop++) {
        const [own, next] = [on[hop - 1]!, on[hop]!];
        const away = fibreMs[city]!;
        const meeting = relations.meetingPoints(own, next);
        city = meeting.reduce((best, one) => (away[one]! < away[best]! ? one : best));
        delayMs += away[city]! * networks[own]!.haul + handoverMs;
      }
      return delayMs + fibreMs[city]![to.city]! * networks[to.network]!.haul;
    },
  };
}

/** Different cities, each the likelier the more it weighs. */
function drawCities(
  random: SeededRandom,
  count: number,
  weightOf: (city: City) => number,
  from: readonly number[] = cities.map((_, index) => index),
): number[] {
  const left = [...from];
  const drawn: number[] = [];
  while (drawn.length < count && left.length > 0) {
    const one = random.pickWeighted(left, (index) => weightOf(cities[index]!));
    drawn.push(one);
    left.splice(left.indexOf(one), 1);
  }
  return drawn;
}

/** One-way delay in ms between all cities, over the shortest fibre (Floyd and Warshall). */
function layFibre(random: SeededRandom): number[][] {
  const km = cities.map((a) => cities.map((b) => kilometres(a, b)));
  const delayMs = cities.map((_, a) => cities.map((_, b) => (a === b ? 0 : Number.POSITIVE_INFINITY)));
  const lay = (a: number, b: number, detour: number) => {
    const ms = km[a]![b]! * detour * msPerKm;
    if (ms < delayMs[a]![b]!) delayMs[a]![b] = delayMs[b]![a] = ms;
  };
  for (let a = 0; a < cities.length; a++) {
    for (let b = 0; b < a; b++) {
      const isBetween = (one: number) =>
        one !== a && one !== b && km[a]![one]! ** 2 + km[b]![one]! ** 2 < km[a]![b]! ** 2;
      if (!cities.some((_, one) => isBetween(one))) lay(a, b, 1.2 + 0.6 * random.next());
    }
  }
  const large = drawCities(random, 30, (city) => city.millions);
  for (let cable = 0; cable < counts.cables; cable++) {
    const [a, b] = [random.pick(large), random.pick(large)];
    if (km[a]![b]! > 4000) lay(a, b, 1.1 + 0.3 * random.next());
  }
  for (let via = 0; via < cities.length; via++)
    for (const row of delayMs)
      for (let to = 0; to < row.length; to++) row[to] = Math.min(row[to]!, row[via]! + delayMs[via]![to]!);
  return delayMs;
}

/** Who is there, who buys from whom and who peers. */
class Relations {
  readonly networks: Network[] = [];
  readonly providersOf: number[][] = [];
  readonly customersOf: number[][] = [];
  readonly peersOf: number[][] = [];
  readonly #random: SeededRandom;
  readonly #exchanges: ReadonlySet<number>;
  readonly #meetings = new Map<string, readonly number[]>();

  constructor(random: SeededRandom, exchanges: ReadonlySet<number>) {
    this.#random = random;
    this.#exchanges = exchanges;
  }

  addGlobal(): void {
    const random = this.#random;
    const elsewhere = drawCities(random, random.integer(20, 45), (city) => city.millions);
    const added = this.#add("global", [...new Set([...this.#exchanges, ...elsewhere])]);
    for (let other = 0; other < added; other++) this.#relate(added, other, "peer");
  }

  addRegional(fibreMs: readonly number[][]): void {
    const random = this.#random;
    const [home = 0] = drawCities(random, 1, (city) => city.millions ** 0.7);
    const near = this.#citiesOf(cities[home]!.region).filter((city) => city !== home);
    const others = drawCities(random, random.integer(2, 11), (city) => city.millions, near);
    const abroad = random.chance(0.3) ? [random.pick([...this.#exchanges])] : [];
    const added = this.#add("regional", [...new Set([home, ...others, ...abroad])]);
    this.#buyTransit(added, random.integer(1, 3), fibreMs);
  }

  /** Of a city or a few of one country; one in seven rents space wherever large networks are. */
  addEdge(fibreMs: readonly number[][]): void {
    const random = this.#random;
    const [home = 0] = drawCities(random, 1, (city) => city.millions ** 0.5);
    const { country } = cities[home]!;
    const roams = random.chance(1 / 7);
    const others = cities.flatMap((city, index) =>
      index !== home && (roams || city.country === country) ? [index] : [],
    );
    const count = roams ? random.integer(2, 8) : random.integer(0, 2);
    const added = this.#add("edge", [home, ...drawCities(random, count, (city) => city.millions, others)]);
    this.#buyTransit(added, random.integer(1, 2), fibreMs);
  }

  peer(): void {
    for (const exchange of this.#exchanges) {
      const here = this.networks.flatMap(({ kind, cities: at }, index) =>
        kind !== "global" && at.includes(exchange) ? [index] : [],
      );
      for (const a of here)
        for (const b of here)
          if (a < b && !this.#areRelated(a, b) && this.#random.chance(peeringShare))
            this.#relate(a, b, "peer");
    }
  }

  /** Cities where two neighbours hand over. */
  meetingPoints(a: number, b: number): readonly number[] {
    return this.#meetings.get(keyOf(a, b)) ?? [];
  }

  relation(of: number, other: number): Relation | null {
    if (this.providersOf[of]!.includes(other)) return "provider";
    if (this.customersOf[of]!.includes(other)) return "customer";
    return this.peersOf[of]!.includes(other) ? "peer" : null;
  }

  #citiesOf(region: Region): number[] {
    return cities.flatMap((city, index) => (city.region === region ? [index] : []));
  }

  #add(kind: Network["kind"], at: number[]): number {
    const haul = 1 + 0.25 * this.#random.next();
    this.networks.push({ name: `AS ${this.networks.length + 1}`, cities: at, kind, haul });
    this.providersOf.push([]);
    this.customersOf.push([]);
    this.peersOf.push([]);
    return this.networks.length - 1;
  }

  /** From networks of a wider reach that are where it is; where there is none it goes to the nearest city that has one. */
  #buyTransit(buyer: number, count: number, fibreMs: readonly number[][]): void {
    const { kind, cities: own } = this.networks[buyer]!;
    const sellers = this.networks.flatMap((network, index) =>
      index < buyer && network.kind !== "edge" && !(kind === "global" && network.kind === "regional")
        ? [index]
        : [],
    );
    const isHere = (seller: number) => this.networks[seller]!.cities.some((city) => own.includes(city));
    if (!sellers.some(isHere)) {
      const sold = [...new Set(sellers.flatMap((seller) => this.networks[seller]!.cities))];
      const from = fibreMs[own[0]!]!;
      own.push(sold.reduce((best, one) => (from[one]! < from[best]! ? one : best)));
    }
    for (let bought = 0; bought < count; bought++) {
      const left = sellers.filter((seller) => isHere(seller) && !this.#areRelated(buyer, seller));
      if (left.length === 0) return;
      this.#relate(
        buyer,
        this.#random.pickWeighted(left, (seller) => 1 + this.#degree(seller)),
        "customer",
      );
    }
  }

  #degree(network: number): number {
    return this.customersOf[network]!.length + this.peersOf[network]!.length;
  }

  #areRelated(a: number, b: number): boolean {
    return this.#meetings.has(keyOf(a, b));
  }

  /** `customer`: the first buys from the second. */
  #relate(a: number, b: number, as: "customer" | "peer"): void {
    const shared = this.networks[a]!.cities.filter((city) => this.networks[b]!.cities.includes(city));
    const atExchanges = shared.filter((city) => this.#exchanges.has(city));
    this.#meetings.set(keyOf(a, b), as === "peer" ? atExchanges : shared);
    if (as === "customer") {
      this.providersOf[a]!.push(b);
      this.customersOf[b]!.push(a);
    } else {
      this.peersOf[a]!.push(b);
      this.peersOf[b]!.push(a);
    }
  }
}

const keyOf = (a: number, b: number) => `${Math.min(a, b)} ${Math.max(a, b)}`;

/** By network: whom it hands traffic for the destination; itself at the destination. */
function routesTo(
  { networks, providersOf, customersOf, peersOf }: Relations,
  destination: number,
  seed: number,
): number[] {
  const next = new Array<number>(networks.length).fill(-1);
  const hops = new Array<number>(networks.length).fill(Number.POSITIVE_INFINITY);
  next[destination] = destination;
  hops[destination] = 0;
  /** Neighbours tell what they chose; of several that are as long, a hash chooses. */
  const spread = (from: readonly number[], to: readonly (readonly number[])[], once: boolean) => {
    let told = from;
    while (told.length > 0) {
      const length = Math.min(...told.map((one) => hops[one]!));
      const offers = told
        .filter((one) => hops[one] === length)
        .flatMap((via) => to[via]!.filter((one) => next[one] === -1).map((one) => ({ via, one })))
        .sort((a, b) => hashUnit(seed, a.via, a.one) - hashUnit(seed, b.via, b.one));
      const waiting = told.filter((one) => hops[one] !== length);
      const reached: number[] = [];
      for (const { via, one } of offers) {
        if (next[one] !== -1) continue;
        next[one] = via;
        hops[one] = length + 1;
        reached.push(one);
      }
      told = once ? waiting : [...waiting, ...reached];
    }
  };
  const reached = () => networks.flatMap((_, index) => (next[index] === -1 ? [] : [index]));
  spread([destination], providersOf, false);
  spread(reached(), peersOf, true);
  spread(reached(), customersOf, false);
  return next;
}
