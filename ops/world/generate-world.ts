/**
 * The seeded generator: organisations are drawn one after the other until all sites are used, each with its place, its
 * provider (not always one of its own country) and its ranges. Then the plan gets addresses. The same settings give the
 * same world on every machine.
 */
import { UsageError } from "#core/errors";
import { finishWorld } from "./finish-world.ts";
import type { PlannedHost } from "./lay-out.ts";
import type { World } from "./model.ts";
import { distanceKm, type Place, places } from "./places.ts";
import type { Provider } from "./plan-registry.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { type HostDraft, WorldDraft } from "./world-draft.ts";

interface WorldSettings {
  readonly seed: number;
  readonly sites: number;
  readonly crawlers: number;
  /** Oddities that live code must cope with. Default: none. */
  readonly oddities?: Partial<WorldOddities>;
}

/**
 * Oddities beyond ordinary organisations: names that resolve differently by client, and ranges used in two places. Each
 * is a share of the world's sites from 0 to 1.
 */
interface WorldOddities {
  /** Sites whose name has two to four addresses in different subnets. */
  readonly geoDns: number;
  /** Sites in a range whose two halves are used in different cities. */
  readonly splitLeaves: number;
}

const noOddities: WorldOddities = { geoDns: 0, splitLeaves: 0 };

/** The generator's limits. Far beyond them, the planned /8s would not suffice. */
export const worldLimits = { sites: 100_000, crawlers: 2_000 } as const;

export function generateWorld({ seed, sites, crawlers, oddities: asked }: WorldSettings): World {
  const oddities = { ...noOddities, ...asked };
  refuseBadSettings({ seed, sites, crawlers }, oddities);
  const draft = new WorldDraft({ seed, sites });
  drawCrawlers(draft, crawlers);
  const organisations = new Organisations(draft);
  while (draft.sitesLeft > 0) {
    if (!drawOddity(draft, oddities)) organisations.addSite();
  }
  organisations.register();
  return finishWorld(draft);
}

function refuseBadSettings(counts: Omit<WorldSettings, "oddities">, oddities: WorldOddities): void {
  const check = (name: string, value: number, low: number, high: number) => {
    if (Number.isInteger(value) && value >= low && value <= high) return;
    throw new UsageError(`world: ${name} is ${value}: must be a whole number from ${low} to ${high}`);
  };
  check("seed", counts.seed, 0, 2 ** 32 - 1);
  check("sites", counts.sites, 1, worldLimits.sites);
  check("crawlers", counts.crawlers, 1, worldLimits.crawlers);
  for (const [name, share] of Object.entries(oddities)) {
    if (!(share >= 0 && share <= 1)) throw new UsageError(`world: ${name} is ${share}: must be from 0 to 1`);
  }
}

// Draws where partners are, and how their ranges are registered.

/** The share of partners that joined because a neighbour was one. */
const neighbourShare = 0.4;

/** The share of the others that take, of two places, the one farther away from all partners. */
const apartShare = 0.7;

/**
 * Draws every place once, preferring larger ones, before any place gets a second partner. Some partners join because a
 * neighbour is one and others keep apart, so that runners-up are as close as in measured fleets, and gaps as wide.
 */
function drawCrawlers(draft: WorldDraft, count: number): void {
  const { random, plan } = draft;
  let free = [...places];
  for (let index = 0; index < count; index++) {
    if (free.length === 0) free = [...places];
    const place = placeForPartner(draft, free);
    free.splice(free.indexOf(place), 1);
    const provider = draft.providerFor(place);
    const name = draft.names.crawler(place.name);
    draft.crawlers.push({ ...draft.hostAt(place, provider.network), name });
    const holder = plan.addHolder(`${name} partner library`, place.country, provider.registry);
    const host = { type: "crawler", index, offset: random.integer(2, 6), unary: false } as const;
    plan.assign({ provider, city: place.name, holder, departments: [{ hosts: [host] }] });
    draft.partners.push({ provider, holder });
  }
}

function placeForPartner({ random, crawlers }: WorldDraft, free: readonly Place[]): Place {
  if (crawlers.length > 0 && random.chance(neighbourShare)) {
    const neighbour = random.pick(crawlers);
    return free.reduce((best, one) =>
      distanceKm(one, neighbour) < distanceKm(best, neighbour) ? one : best,
    );
  }
  const drawOne = () => random.pickWeighted(free, (place) => place.weight);
  const first = drawOne();
  if (crawlers.length === 0 || !random.chance(apartShare)) return first;
  const second = drawOne();
  const nearestKm = (place: Place) => Math.min(...crawlers.map((crawler) => distanceKm(place, crawler)));
  return nearestKm(first) >= nearestKm(second) ? first : second;
}

// Draws the odd organisations of a generated world, each when its share of the sites is due.

/** Draws an odd organisation if one is due. Returns false otherwise. */
function drawOddity(draft: WorldDraft, oddities: WorldOddities): boolean {
  const { oddSites, sites } = draft;
  const isDue = (kind: keyof typeof oddSites) =>
    oddSites[kind] < Math.floor(oddities[kind] * (sites.length + 1));
  const before = sites.length;
  if (isDue("geoDns")) {
    drawGeoHost(draft);
    oddSites.geoDns += sites.length - before;
  } else if (isDue("splitLeaves")) {
    drawSplitLeaf(draft);
    oddSites.splitLeaves += sites.length - before;
  }
  return sites.length > before;
}

/** Draws one name with machines in two to four countries, each in its own range. */
function drawGeoHost(draft: WorldDraft): void {
  const { random, plan, names } = draft;
  const home = draft.drawPlace();
  const homeProvider = draft.providerFor(home);
  const holderWith = draft.holdersOf(names.organisation(), homeProvider);
  const spot = draft.hostAt(home, homeProvider.network);
  const first = draft.addSite(spot, { offset: random.integer(1, 5) });
  const assign = (city: Place, provider: typeof homeProvider, host: PlannedHost) =>
    plan.assign({
      provider,
      city: city.name,
      holder: holderWith(provider),
      departments: [{ hosts: [host] }],
    });
  assign(home, homeProvider, { ...first, unary: false });
  const elsewhere = drawPlaces(draft, 12).filter((place) => distanceKm(place, home) > 1500);
  for (const city of elsewhere.slice(0, random.integer(1, 3))) {
    const provider = draft.providerFor(city);
    const index = draft.replicas.push({ ...draft.hostAt(city, provider.network), site: first.index }) - 1;
    assign(city, provider, { type: "replica", index, offset: random.integer(1, 5), unary: false });
  }
}

/** How many addresses a range in two places has, and where its second part begins. */
const splitSize = 256;

const splitBoundary = 128;

/** Draws a range that the registry lists as one, although its lower half is used in one city and its upper half in another. */
function drawSplitLeaf(draft: WorldDraft): void {
  const { random, plan, names } = draft;
  const home = draft.drawPlace();
  const provider = draft.providerFor(home);
  const holder = plan.addHolder(names.organisation(), home.country, provider.registry);
  const [away] = drawPlaces(draft, 12).filter((place) => distanceKm(place, home) > 1500);
  if (!away) return;
  const hosts: PlannedHost[] = [];
  for (const [city, from] of [
    [home, 0],
    [away, splitBoundary],
  ] as const) {
    const spot = draft.hostAt(city, draft.providerFor(city).network);
    for (let count = random.integer(2, 5); count > 0 && draft.sitesLeft > 0; count--) {
      const offset = from + random.integer(1, splitBoundary - 2);
      hosts.push({ ...draft.addSite(spot, { offset }), unary: false });
    }
  }
  const [first] = hosts;
  if (!first) return;
  const cities = [places.indexOf(home), places.indexOf(away)] as const;
  draft.splits.push({ site: first.index, boundary: splitBoundary, places: cities });
  plan.assign({ provider, city: home.name, holder, departments: [{ hosts, size: splitSize }] });
}

/** Draws different places. Larger ones have a higher probability. */
function drawPlaces(draft: WorldDraft, count: number): Place[] {
  const drawn = new Set<Place>();
  for (let tries = 0; drawn.size < count && tries < 20 * count; tries++) drawn.add(draft.drawPlace());
  return [...drawn];
}

// Draws the ordinary organisations of a generated world. Sites are drawn one after the other. Each is in a range
// already used or in a new one, and each new range belongs to an organisation that already has some or to a new one.
// Few organisations therefore have hundreds of ranges and most have one, as in real registries. At the end the ranges
// are registered: organisation by organisation, those of one city side by side.

/**
 * Ranges per holder, fitted to announced ranges and the organisations that announce them (ip-location-db, June 2026:
 * 411,961 ranges, 75,098 organisations). Random samples of 1,000, 10,000 and 100,000 ranges there have 788, 5,702 and
 * 31,494 organisations. As many ranges drawn here have about 800, 5,300 and 30,900.
 */
const rangesPerHolder: HeavyTailSettings = { concentration: 300, discount: 0.75 };

/** Sites per range beyond `neighbourSiteShare`. There is no public figure, so this assumes the harder case. */
const sitesPerRange: HeavyTailSettings = { concentration: 400, discount: 0.92 };

/** The share of ranges in which the organisation has a second site from the start. */
const neighbourSiteShare = 0.08;

/** The share of organisations registered with a provider of a country other than their own. */
const misfiledShare = 0.22;

/** The shares of organisations with ranges in several places: of their country, or worldwide. */
const nationalShare = 0.15;

const worldwideShare = 0.12;

/** The share of a multi-place organisation's ranges that are at its home. */
const atHomeShare = 0.5;

/** An organisation with at least this many ranges has some in other cities of its country. */
const mostInOnePlace = 4;

/** Maximum number of addresses over which a range's hosts are spread, chosen to fit the smallest sizes. */
const mostOffset = 190;

interface Organisation {
  readonly home: Place;
  readonly reach: "one place" | "its country" | "the world";
  /** The provider of all its ranges. `null` means a provider of each place. */
  readonly provider: Provider | null;
  readonly holderWith: (provider: Provider) => number;
  readonly ranges: RangeDraft[];
}

interface RangeDraft {
  readonly place: Place;
  readonly provider: Provider;
  readonly spot: HostDraft;
  readonly hosts: PlannedHost[];
}

export class Organisations {
  readonly #draft: WorldDraft;
  readonly #rangeOfNext: HeavyTail;
  readonly #holderOfNext: HeavyTail;
  readonly #ranges: RangeDraft[] = [];
  readonly #organisations: Organisation[] = [];

  constructor(draft: WorldDraft) {
    this.#draft = draft;
    this.#rangeOfNext = new HeavyTail(draft.random, sitesPerRange);
    this.#holderOfNext = new HeavyTail(draft.random, rangesPerHolder);
  }

  addSite(): void {
    const draft = this.#draft;
    const index = this.#rangeOfNext.next();
    const known = this.#ranges[index];
    const range = known ?? this.#newRange();
    this.#ranges[index] = range;
    addSiteTo(draft, range);
    const hasNeighbour = known === undefined && draft.random.chance(neighbourSiteShare);
    if (hasNeighbour && draft.sitesLeft > 0) addSiteTo(draft, range);
  }

  /** Registers all ranges. Call it once, after the last site. */
  register(): void {
    const { plan, random } = this.#draft;
    for (const { ranges, holderWith } of this.#organisations) {
      const byPlace = ranges.toSorted(
        (a, b) => a.provider.network - b.provider.network || a.spot.place - b.spot.place,
      );
      for (let at = 0; at < byPlace.length; ) {
        const first = byPlace[at] as RangeDraft;
        const isBeside = (one: RangeDraft) => one.provider === first.provider && one.place === first.place;
        const together = byPlace.slice(at, at + random.integer(1, 6)).filter(isBeside);
        plan.assign({
          provider: first.provider,
          city: first.place.name,
          holder: holderWith(first.provider),
          departments: together,
        });
        at += together.length;
      }
    }
  }

  #newRange(): RangeDraft {
    const draft = this.#draft;
    const index = this.#holderOfNext.next();
    const organisation = this.#organisations[index] ?? foundOrganisation(draft);
    this.#organisations[index] = organisation;
    const place = placeOfRange(draft, organisation);
    const provider = organisation.provider ?? draft.providerFor(place);
    const isLocal = provider.country === place.country;
    const network = isLocal ? provider.network : draft.providerFor(place).network;
    const range = { place, provider, spot: draft.hostAt(place, network), hosts: [] };
    organisation.ranges.push(range);
    return range;
  }
}

function foundOrganisation(draft: WorldDraft): Organisation {
  const { random, names } = draft;
  const home = draft.drawPlace();
  const misfiled = random.chance(misfiledShare);
  const registeredAt = draft.providerFor(misfiled ? draft.drawPlace() : home);
  const draw = random.next();
  const reach =
    draw < worldwideShare ? "the world" : draw < worldwideShare + nationalShare ? "its country" : "one place";
  const registersLocally = reach === "the world" && !misfiled && random.chance(0.5);
  return {
    home,
    reach,
    provider: registersLocally ? null : registeredAt,
    holderWith: draft.holdersOf(names.organisation(), registeredAt),
    ranges: [],
  };
}

function placeOfRange(draft: WorldDraft, { home, reach, ranges }: Organisation): Place {
  const staysHome = reach === "one place" && ranges.length < mostInOnePlace;
  if (staysHome || draft.random.chance(atHomeShare)) return home;
  if (reach === "the world") return draft.drawPlace();
  const here = places.filter((place) => place.country === home.country);
  return draft.random.pickWeighted(here, (place) => place.weight);
}

/** Puts the site just after the last one, or at the same address. */
function addSiteTo(draft: WorldDraft, { spot, hosts }: RangeDraft): void {
  const { random } = draft;
  const last = hosts.at(-1)?.offset;
  const further =
    last === undefined ? random.integer(1, 5) : last + (random.chance(0.2) ? 0 : random.integer(1, 3));
  hosts.push(draft.addSite(spot, { offset: Math.min(further, mostOffset) }));
}

// Groups whose sizes are as uneven as those of holders in real registries: a Pitman-Yor process. Members come one by
// one. Each joins a group with a likelihood that grows with the group's size, or founds one of its own. With
// concentration t and discount d, n members make about t/d · ((1 + n/t)^d − 1) groups.

interface HeavyTailSettings {
  /** How many members must have come before most new ones join an existing group. */
  readonly concentration: number;
  /** From 0 to 1. With a higher value, more groups stay small. */
  readonly discount: number;
}

export class HeavyTail {
  readonly #random: SeededRandom;
  readonly #settings: HeavyTailSettings;
  readonly #groupOf: number[] = [];
  readonly #founderOf: number[] = [];

  constructor(random: SeededRandom, settings: HeavyTailSettings) {
    this.#random = random;
    this.#settings = settings;
  }

  /** Returns the group that the next member joins. A new group has the next free number. */
  next(): number {
    const group = this.#drawGroup();
    const member = this.#groupOf.push(group) - 1;
    if (group === this.#founderOf.length) this.#founderOf.push(member);
    return group;
  }

  #drawGroup(): number {
    const { concentration, discount } = this.#settings;
    const founded = this.#founderOf.length;
    const draw = this.#random.next() * (this.#groupOf.length + concentration);
    const member = Math.floor(draw);
    const group = this.#groupOf[member];
    if (group === undefined) return founded;
    return this.#founderOf[group] === member && this.#random.chance(discount) ? founded : group;
  }
}
