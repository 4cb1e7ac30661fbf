/**
 * The seeded generator: organisations are drawn one after the other until the sites are used up, each with
 * its place, its provider (not always one of its own country) and its ranges; then the plan gets addresses.
 * The same settings give the same world on every machine.
 */
import { UsageError } from "#core/errors";
import { finishWorld } from "./finish-world.ts";
import type { PlannedHost } from "./lay-out.ts";
import type { World } from "./model.ts";
import { Organisations } from "./organisations.ts";
import { distanceKm, type Place, places } from "./places.ts";
import { WorldDraft } from "./world-draft.ts";

interface WorldSettings {
  readonly seed: number;
  readonly sites: number;
  readonly crawlers: number;
  /** Oddities for live code to cope with; absent: none. */
  readonly oddities?: Partial<WorldOddities>;
}

/**
 * Oddities besides ordinary organisations: names that resolve differently by client, and ranges used in two places. Each is a
 * share of the world's sites from 0 to 1.
 */
interface WorldOddities {
  /** Sites under a name with two to four addresses in different subnets. */
  readonly geoDns: number;
  /** Sites in a range whose halves are used in different cities. */
  readonly splitLeaves: number;
}

const noOddities: WorldOddities = { geoDns: 0, splitLeaves: 0 };

/** The generator's bounds; far beyond them the planned /8s would not suffice. */
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

// Where partners are, and how their ranges are registered.

/** Share of partners that came because a neighbour was one. */
const neighbourShare = 0.4;

/** The share of the others that take, of two places, the one farther from all partners. */
const apartShare = 0.7;

/**
 * Every place once, the larger ones likelier first, before any place has two. Some come because a neighbour is
 * one already and others keep apart, so that runners-up are as close as in measured fleets, and gaps as wide.
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

// The odd organisations of a generated world, each drawn when its share of the sites is due.

/** Draws an odd organisation where one is due; false where none is. */
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

/** One name with machines in two to four countries, each in its own range. */
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

/** The addresses of a range in two places, and where its second part begins. */
const splitSize = 256;

const splitBoundary = 128;

/** A range that the registry lists as one, used in one city below its middle and in another above. */
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

/** Draws different places, larger ones with a higher probability. */
function drawPlaces(draft: WorldDraft, count: number): Place[] {
  const drawn = new Set<Place>();
  for (let tries = 0; drawn.size < count && tries < 20 * count; tries++) drawn.add(draft.drawPlace());
  return [...drawn];
}
