/** Who is at which address of a generated world, and how long round trips between them take. */
import type { World, WorldCrawler, WorldSite } from "./model.ts";
import { exchangeCities, places } from "./places.ts";
import { hashFirst, hashNormal, hashUnit, hashUnitOf } from "./seeded-random.ts";
import type { HostDraft, WorldDraft } from "./world-draft.ts";

/** A draft's hosts with their addresses. */
export interface Placed extends Pick<World, "crawlers" | "sites"> {
  /** Addresses of the draft's replicas. */
  readonly replicas: readonly string[];
}

type RoundTrips = Pick<World, "rttMs" | "rttRow" | "crawlerRttMs">;

export function roundTrips(draft: WorldDraft, placed: Placed): RoundTrips {
  const exchanges = places.filter(({ name }) => exchangeCities.includes(name));
  const model = new NetworkModel(
    draft.seed,
    exchanges.map(({ latitude, longitude }) => unitVector(latitude, longitude)),
  );
  const ends = endsByAddress(draft, placed);
  const crawlers = placed.crawlers.map(
    ({ address }) => (ends.get(address) as readonly Endpoint[])[0] as Endpoint,
  );
  const rows = new RttRows(model, crawlers);
  return {
    rttMs: (crawlerIndex, address) => {
      const from = crawlers[crawlerIndex];
      const to = ends.get(address);
      return from && to ? Math.min(...to.map((end) => model.rttMs(from, end))) : null;
    },
    rttRow: (siteIndex, into) => {
      const to = ends.get(placed.sites[siteIndex]?.address ?? "");
      if (!to) throw new RangeError(`no site ${siteIndex}: the world has ${placed.sites.length}`);
      rows.fill(to, into);
    },
    crawlerRttMs: (a, b) => {
      const [from, to] = [crawlers[a], crawlers[b]];
      if (!from || !to) throw new RangeError(`no crawler ${from ? b : a}: the world has ${crawlers.length}`);
      return a === b ? 0 : model.rttMs(from, to);
    },
  };
}

/** One end for each address, several where it is announced from several places. */
function endsByAddress(
  draft: WorldDraft,
  { crawlers, sites, replicas }: Placed,
): Map<string, readonly Endpoint[]> {
  let ids = 0;
  const ends = new Map<string, readonly Endpoint[]>();
  // Sites that share an address are one machine: the first of them says where it is.
  const put = (address: string, hosts: readonly HostDraft[]) => {
    const made = hosts.map((host) => endpointOf(host, ids++));
    if (!ends.has(address)) ends.set(address, made);
  };
  draft.crawlers.forEach((crawler, index) => {
    put((crawlers[index] as WorldCrawler).address, [crawler]);
  });
  draft.sites.forEach((site, index) => {
    put((sites[index] as WorldSite).address, site.instances.length > 0 ? site.instances : [site]);
  });
  draft.replicas.forEach((replica, index) => {
    put(replicas[index] as string, [replica]);
  });
  return ends;
}

function endpointOf(draft: HostDraft, id: number): Endpoint {
  const country = places.findIndex((place) => place.country === places[draft.place]?.country);
  const { network, lastMileMs } = draft;
  return { id, ...unitVector(draft.latitude, draft.longitude), country, network, lastMileMs };
}

// Round trips from every crawler to one host at once. What belongs to a pair of networks or countries is kept
// for each network and country that was asked for, as rows over the crawlers; the sums are those of
// one pair alone, to the last digit.

interface PeeringRow {
  readonly factors: Float64Array;
  readonly meetingsMs: Float64Array;
  readonly detourRanks: Int8Array;
}

class RttRows {
  readonly #model: NetworkModel;
  readonly #crawlers: readonly Endpoint[];
  readonly #exchangesKm: readonly Float64Array[];
  readonly #ownHashes: Int32Array;
  readonly #peerings = new Map<number, PeeringRow>();
  readonly #countries = new Map<number, Float64Array>();

  /** The crawlers' ids are smaller than those of any other host. */
  constructor(model: NetworkModel, crawlers: readonly Endpoint[]) {
    this.#model = model;
    this.#crawlers = crawlers;
    this.#exchangesKm = crawlers.map((crawler) => model.exchangesKm(crawler));
    this.#ownHashes = Int32Array.from(crawlers, ({ id }) => model.ownHash(id));
  }

  /** RTT in ms from each crawler to the nearest of these ends, by the crawlers' positions. */
  fill(ends: readonly Endpoint[], into: Float64Array): void {
    into.fill(Number.POSITIVE_INFINITY, 0, this.#crawlers.length);
    for (const end of ends) this.#least(end, into);
  }

  #least(to: Endpoint, into: Float64Array): void {
    const crawlers = this.#crawlers;
    const { factors, meetingsMs, detourRanks } = this.#peeringRow(to.network);
    const countryFactors = this.#countryRow(to.country);
    let exchangesKm: Float64Array | null = null;
    for (let index = 0; index < crawlers.length; index++) {
      const from = crawlers[index]!;
      const rank = detourRanks[index]!;
      let km: number;
      if (rank < 0) km = arcKm(from, to);
      else {
        exchangesKm ??= this.#model.exchangesKm(to);
        km = detourKm(this.#exchangesKm[index]!, exchangesKm, rank);
      }
      const inflation = inflationOf(countryFactors[index]!, factors[index]!);
      const hostsMs = from.lastMileMs + to.lastMileMs + ownMsOf(this.#ownHashes[index]!, to.id);
      const rttMs = sumMs(km * inflation, meetingsMs[index]!, hostsMs);
      if (rttMs < into[index]!) into[index] = rttMs;
    }
  }

  #peeringRow(network: number): PeeringRow {
    const known = this.#peerings.get(network);
    if (known) return known;
    const peerings = this.#crawlers.map((crawler) => this.#model.peering(crawler.network, network));
    const row = {
      factors: Float64Array.from(peerings, ({ factor }) => factor),
      meetingsMs: Float64Array.from(peerings, ({ meetingMs }) => meetingMs),
      detourRanks: Int8Array.from(peerings, ({ detourRank }) => detourRank),
    };
    this.#peerings.set(network, row);
    return row;
  }

  #countryRow(country: number): Float64Array {
    const known = this.#countries.get(country);
    if (known) return known;
    const row = Float64Array.from(this.#crawlers, (crawler) =>
      this.#model.countryFactor(crawler.country, country),
    );
    this.#countries.set(country, row);
    return row;
  }
}

// How long a round trip takes in a generated world. Light in fibre travels at about two thirds of c, so a
// great-circle kilometre costs 0.010 ms there and back. On top come, each fixed by the seed:
// - inflation per pair of countries: cables do not follow great circles;
// - peering per pair of networks: a factor, a little time where they meet, and for some pairs a detour over an
// exchange city, because they do not meet at home. Detours are why the triangle inequality fails on the real
// Internet too;
// - a last mile per host, and a little that belongs to the pair of hosts alone.
// `worldFigures` holds the result against measured matrices, and the rows above compute the same for many at once.

/** One host's place in the network. */
interface Endpoint extends Direction {
  /** Distinct per host: the pair's own part of the RTT hangs on it. */
  readonly id: number;
  readonly country: number;
  readonly network: number;
  readonly lastMileMs: number;
}

/** Unit vector of latitude and longitude: a distance is then one arc cosine. */
interface Direction {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** How two networks reach each other. */
interface Peering {
  readonly factor: number;
  readonly meetingMs: number;
  /** Which exchange a detour runs over, by the detour's length: 0 for the shortest; −1: no detour. */
  readonly detourRank: number;
}

/** 2 · 1 km / (2/3 · 299.792 km/ms). */
const rttMsPerKm = 0.010007;

const earthRadiusKm = 6371;

/** Chosen so that `worldFigures` of the generated world lie where measured matrices lie. */
const calibration = {
  inflationAbroad: { median: 1.4, sigma: 0.07 },
  inflationAtHome: { median: 1.5, sigma: 0.15 },
  peeringSigma: 0.045,
  meetingMs: 1,
  detourShare: 0.08,
  detourRanks: 6,
  pairMs: 0.7,
} as const;

/** Longest that two networks take to meet. */
const mostMeetingMs = 60;

class NetworkModel {
  readonly #seed: number;
  readonly #exchanges: readonly Direction[];

  constructor(seed: number, exchanges: readonly Direction[]) {
    this.#seed = seed;
    this.#exchanges = exchanges;
  }

  /** Undisturbed round-trip time in ms, the same in both directions, rounded to 0.01 ms. */
  rttMs(a: Endpoint, b: Endpoint): number {
    const { factor, meetingMs, detourRank } = this.peering(a.network, b.network);
    const km = detourRank < 0 ? arcKm(a, b) : detourKm(this.exchangesKm(a), this.exchangesKm(b), detourRank);
    const inflation = inflationOf(this.countryFactor(a.country, b.country), factor);
    return sumMs(km * inflation, meetingMs, a.lastMileMs + b.lastMileMs + this.ownMs(a.id, b.id));
  }

  peering(a: number, b: number): Peering {
    const [low, high] = a <= b ? [a, b] : [b, a];
    const factor = Math.exp(calibration.peeringSigma * hashNormal(this.#seed ^ 0x44, low, high));
    if (a === b) return { factor, meetingMs: 0, detourRank: -1 };
    const meetingMs = -calibration.meetingMs * Math.log(1 - hashUnit(this.#seed ^ 0x55, low, high));
    const draw = hashUnit(this.#seed ^ 0x22, low, high) / calibration.detourShare;
    const detourRank = draw < 1 ? Math.floor(draw * calibration.detourRanks) : -1;
    return { factor, meetingMs: Math.min(mostMeetingMs, meetingMs), detourRank };
  }

  countryFactor(a: number, b: number): number {
    const [low, high] = a <= b ? [a, b] : [b, a];
    const { median, sigma } = a === b ? calibration.inflationAtHome : calibration.inflationAbroad;
    return median * Math.exp(sigma * hashNormal(this.#seed ^ 0x33, low, high));
  }

  /** The part that belongs to the two hosts alone, in ms. */
  ownMs(a: number, b: number): number {
    return a <= b ? ownMsOf(this.ownHash(a), b) : ownMsOf(this.ownHash(b), a);
  }

  /** What the host of the smaller id settles of that part. */
  ownHash(smallerId: number): number {
    return hashFirst(this.#seed ^ 0x11, smallerId);
  }

  /** Kilometres to each exchange. */
  exchangesKm(from: Direction): Float64Array {
    return Float64Array.from(this.#exchanges, (exchange) => arcKm(from, exchange));
  }
}

/** The hosts' own part in ms, from `ownHash` of the smaller id and the larger id. */
function ownMsOf(ownHash: number, largerId: number): number {
  return calibration.pairMs * hashUnitOf(ownHash, largerId);
}

/** No cable is shorter than the great circle. */
function inflationOf(countryFactor: number, peeringFactor: number): number {
  return Math.max(1, countryFactor * peeringFactor);
}

/** The parts of a round trip put together: kilometres with their inflation, what networks and hosts add in ms. */
function sumMs(inflatedKm: number, meetingMs: number, hostsMs: number): number {
  return Math.round((inflatedKm * rttMsPerKm + meetingMs + hostsMs) * 100) / 100;
}

/** The way over the exchange that makes the detour of that rank, the last one where there are fewer. */
function detourKm(fromKm: Float64Array, toKm: Float64Array, rank: number): number {
  const waysKm = new Float64Array(fromKm.length);
  for (let exchange = 0; exchange < waysKm.length; exchange++) {
    const km = fromKm[exchange]! + toKm[exchange]!;
    let at = exchange;
    for (; at > 0 && waysKm[at - 1]! > km; at--) waysKm[at] = waysKm[at - 1]!;
    waysKm[at] = km;
  }
  return waysKm[Math.min(rank, waysKm.length - 1)] ?? 0;
}

function arcKm(a: Direction, b: Direction): number {
  const dot = a.x * b.x + a.y * b.y + a.z * b.z;
  return earthRadiusKm * Math.acos(Math.min(1, Math.max(-1, dot)));
}

function unitVector(latitude: number, longitude: number): Direction {
  const phi = (latitude * Math.PI) / 180;
  const lambda = (longitude * Math.PI) / 180;
  return { x: Math.cos(phi) * Math.cos(lambda), y: Math.cos(phi) * Math.sin(lambda), z: Math.sin(phi) };
}
