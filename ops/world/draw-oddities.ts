/** The odd organisations of a generated world, each drawn when its share of the sites is due. */
import type { PlannedHost } from "./lay-out.ts";
import type { WorldOddities } from "./oddities.ts";
import { distanceKm, type Place, places } from "./places.ts";
import type { WorldDraft } from "./world-draft.ts";

/** Draws an odd organisation where one is due; false where none is. */
export function drawOddity(draft: WorldDraft, oddities: WorldOddities): boolean {
  const { oddSites, sites } = draft;
  const isDue = (kind: keyof typeof oddSites) =>
    oddSites[kind] < Math.floor(oddities[kind] * (sites.length + 1));
  const before = sites.length;
  if (isDue("anycast")) {
    drawAnycastHolder(draft);
    oddSites.anycast += sites.length - before;
  } else if (isDue("geoDns")) {
    drawGeoHost(draft);
    oddSites.geoDns += sites.length - before;
  } else if (isDue("splitLeaves")) {
    drawSplitLeaf(draft);
    oddSites.splitLeaves += sites.length - before;
  }
  return sites.length > before;
}

/** A content network: one to three ranges, each announced from the same six to twenty places. */
function drawAnycastHolder(draft: WorldDraft): void {
  const { random, plan, names } = draft;
  const home = draft.drawPlace();
  const provider = draft.providerFor(home);
  const holder = plan.addHolder(names.organisation(), home.country, provider.registry);
  const network = draft.newNetwork();
  const cities = [home, ...drawPlaces(draft, random.integer(5, 19))];
  const instances = cities.map((city) => draft.machineAt(city, network));
  const [spot] = instances;
  if (!spot) return;
  for (let ranges = random.integer(1, 3); ranges > 0 && draft.sitesLeft > 0; ranges--) {
    const hosts = Array.from(
      { length: Math.min(draft.sitesLeft, random.integer(2, 6)) },
      (_, position): PlannedHost => draft.addSite(spot, { offset: 1 + 3 * position, instances }),
    );
    plan.assign({ provider, city: home.name, holder, departments: [{ hosts, size: 256 }] });
  }
}

/** One name with machines in two to four countries, each in a range of its own. */
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

/** Addresses of a range that lies in two places, and where its second part begins. */
const splitSize = 256;
const splitBoundary = 128;

/** A range that the registry knows as one, used in one city below its middle and in another above. */
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

/** So many different places, the larger ones likelier. */
function drawPlaces(draft: WorldDraft, count: number): Place[] {
  const drawn = new Set<Place>();
  for (let tries = 0; drawn.size < count && tries < 20 * count; tries++) drawn.add(draft.drawPlace());
  return [...drawn];
}
