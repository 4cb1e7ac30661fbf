/** The hosts at each address of a generated world, and the round-trip times between them. */

import type { World, WorldCrawler, WorldSite } from "./model.ts";
import { exchangeCities, places } from "./places.ts";
import { hashNormal, hashUnit } from "./seeded-random.ts";
import type { HostDraft, WorldDraft } from "./world-draft.ts";

/** A draft's hosts with their addresses. */
export interface Placed extends Pick<World, "crawlers" | "sites"> {
  /** Addresses of the draft's replicas, by index. */
  readonly replicas: readonly string[];
}

type RoundTrips = Pick<World, "rttMs" | "crawlerRttMs">;

export function roundTrips(draft: WorldDraft, placed: Placed): RoundTrips {
  const exchanges = places.filter(({ name }) => exchangeCities.includes(name));
  const model = new NetworkModel(
    draft.seed,
    exchanges.map(({ latitude, longitude }) => unitVector(latitude, longitude)),
  );
  const ends = endsByAddress(draft, placed);
  const crawlers = placed.crawlers.map(({ address }) => ends.get(address)!);
  return {
    rttMs: (crawlerIndex, address) => {
      const from = crawlers[crawlerIndex];
      const to = ends.get(address);
      return from && to ? model.rttMs(from, to) : null;
    },
    crawlerRttMs: (a, b) => {
      const [from, to] = [crawlers[a], crawlers[b]];
      if (!from || !to) throw new RangeError(`no crawler ${from ? b : a}: the world has ${crawlers.length}`);
      return a === b ? 0 : model.rttMs(from, to);
    },
  };
}

function endsByAddress(draft: WorldDraft, { crawlers, sites, replicas }: Placed): Map<string, Endpoint> {
  let ids = 0;
  const ends = new Map<string, Endpoint>();
  // Sites that share an address are one machine, which is where the first of them is.
  const put = (address: string, host: HostDraft) => {
    const made = endpointOf(host, ids++);
    if (!ends.has(address)) ends.set(address, made);
  };
  draft.crawlers.forEach((crawler, index) => {
    put((crawlers[index] as WorldCrawler).address, crawler);
  });
  draft.sites.forEach((site, index) => {
    put((sites[index] as WorldSite).address, site);
  });
  draft.replicas.forEach((replica, index) => {
    put(replicas[index] as string, replica);
  });
  return ends;
}

function endpointOf(draft: HostDraft, id: number): Endpoint {
  const country = places.findIndex((place) => place.country === places[draft.place]?.country);
  const { network, lastMileMs } = draft;
  return { id, ...unitVector(draft.latitude, draft.longitude), country, network, lastMileMs };
}

// Computes how long a round trip takes in a generated world. Light in fibre travels at about two thirds of c, so a
// great-circle kilometre costs 0.010 ms there and back. The following is added, each fixed by the seed:
// - inflation per pair of countries, because cables do not follow great circles;
// - peering per pair of networks: a factor, a little time where they meet, and for some pairs a detour over an
//   exchange city, because they do not meet at home (on the real Internet, too, such detours violate the triangle
//   inequality);
// - a last mile per host, and a small part that only this pair of hosts has.

/** A host's position in the network. */
interface Endpoint extends Direction {
  /** Distinct for each host, because the pair's own part of the RTT depends on it. */
  readonly id: number;
  readonly country: number;
  readonly network: number;
  readonly lastMileMs: number;
}

/** Latitude and longitude as a unit vector, which makes a distance one arc cosine. */
interface Direction {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** How two networks reach each other. */
interface Peering {
  readonly factor: number;
  readonly meetingMs: number;
  /** The rank of the detour's exchange by length, where 0 is the shortest. −1 means no detour. */
  readonly detourRank: number;
}

/** 2 · 1 km / (2/3 · 299.792 km/ms). */
const rttMsPerKm = 0.010007;

const earthRadiusKm = 6371;

/** Chosen so that the figures of the generated world match those of measured matrices (test/ops/world/generate-world). */
const calibration = {
  inflationAbroad: { median: 1.4, sigma: 0.07 },
  inflationAtHome: { median: 1.5, sigma: 0.15 },
  peeringSigma: 0.045,
  meetingMs: 1,
  detourShare: 0.08,
  detourRanks: 6,
  pairMs: 0.7,
} as const;

/** Maximum time that two networks take to meet. */
const mostMeetingMs = 60;

class NetworkModel {
  readonly #seed: number;
  readonly #exchanges: readonly Direction[];
  /** Cached by the two networks and the two countries, because pairs recur. */
  readonly #peerings = new Map<number, Peering>();
  readonly #countryFactors = new Map<number, number>();

  constructor(seed: number, exchanges: readonly Direction[]) {
    this.#seed = seed;
    this.#exchanges = exchanges;
  }

  /** Undisturbed round-trip time in ms, the same in both directions, rounded to 0.01 ms. */
  rttMs(a: Endpoint, b: Endpoint): number {
    const { factor, meetingMs, detourRank } = this.#peering(a.network, b.network);
    const km = detourRank < 0 ? arcKm(a, b) : this.#detourKm(a, b, detourRank);
    // No cable is shorter than the great circle.
    const inflation = Math.max(1, this.#countryFactor(a.country, b.country) * factor);
    const [low, high] = a.id <= b.id ? [a.id, b.id] : [b.id, a.id];
    const ownMs = calibration.pairMs * hashUnit(this.#seed ^ 0x11, low, high);
    const hostsMs = a.lastMileMs + b.lastMileMs + ownMs;
    return Math.round((km * inflation * rttMsPerKm + meetingMs + hostsMs) * 100) / 100;
  }

  #peering(a: number, b: number): Peering {
    return kept(this.#peerings, a, b, (low, high) => {
      const factor = Math.exp(calibration.peeringSigma * hashNormal(this.#seed ^ 0x44, low, high));
      if (a === b) return { factor, meetingMs: 0, detourRank: -1 };
      const meetingMs = -calibration.meetingMs * Math.log(1 - hashUnit(this.#seed ^ 0x55, low, high));
      const draw = hashUnit(this.#seed ^ 0x22, low, high) / calibration.detourShare;
      const detourRank = draw < 1 ? Math.floor(draw * calibration.detourRanks) : -1;
      return { factor, meetingMs: Math.min(mostMeetingMs, meetingMs), detourRank };
    });
  }

  #countryFactor(a: number, b: number): number {
    return kept(this.#countryFactors, a, b, (low, high) => {
      const { median, sigma } = a === b ? calibration.inflationAtHome : calibration.inflationAbroad;
      return median * Math.exp(sigma * hashNormal(this.#seed ^ 0x33, low, high));
    });
  }

  /** The length of the detour over the exchange of that rank. A higher rank than there are exchanges means the last one. */
  #detourKm(from: Direction, to: Direction, rank: number): number {
    const waysKm = Float64Array.from(
      this.#exchanges,
      (exchange) => arcKm(from, exchange) + arcKm(to, exchange),
    ).sort();
    return waysKm[Math.min(rank, waysKm.length - 1)] ?? 0;
  }
}

/** Returns a value per unordered pair, computed once. */
function kept<Made>(
  known: Map<number, Made>,
  a: number,
  b: number,
  make: (low: number, high: number) => Made,
): Made {
  const [low, high] = a <= b ? [a, b] : [b, a];
  const pair = low * 2 ** 24 + high;
  const before = known.get(pair);
  if (before !== undefined) return before;
  const made = make(low, high);
  known.set(pair, made);
  return made;
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
