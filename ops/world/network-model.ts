/**
 * How long a round trip takes in a generated world. Light in fibre travels at about two thirds of c, so a
 * great-circle kilometre costs 0.010 ms there and back. On top come, each fixed by the seed:
 *   - inflation per pair of countries: cables do not follow great circles;
 *   - peering per pair of networks: a factor, a little time where they meet, and for some pairs a detour over an
 *     exchange city, because they do not meet at home. Detours are why the triangle inequality fails on the real
 *     Internet too;
 *   - a last mile per host, and a little that belongs to the pair of hosts alone.
 * `worldFigures` holds the result against measured matrices; rtt-rows.ts computes the same for many at once.
 */
import { hashFirst, hashNormal, hashUnit, hashUnitOf } from "./seeded-random.ts";

/** One host's place in the network. */
export interface Endpoint extends Direction {
  /** Distinct per host: the pair's own part of the RTT hangs on it. */
  readonly id: number;
  readonly country: number;
  readonly network: number;
  readonly lastMileMs: number;
}

/** Unit vector of latitude and longitude: a distance is then one arc cosine. */
export interface Direction {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** How two networks reach each other. */
export interface Peering {
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

export class NetworkModel {
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
export function ownMsOf(ownHash: number, largerId: number): number {
  return calibration.pairMs * hashUnitOf(ownHash, largerId);
}

/** No cable is shorter than the great circle. */
export function inflationOf(countryFactor: number, peeringFactor: number): number {
  return Math.max(1, countryFactor * peeringFactor);
}

/** The parts of a round trip put together: kilometres with their inflation, what networks and hosts add in ms. */
export function sumMs(inflatedKm: number, meetingMs: number, hostsMs: number): number {
  return Math.round((inflatedKm * rttMsPerKm + meetingMs + hostsMs) * 100) / 100;
}

/** The way over the exchange that makes the detour of that rank, the last one where there are fewer. */
export function detourKm(fromKm: Float64Array, toKm: Float64Array, rank: number): number {
  const waysKm = new Float64Array(fromKm.length);
  for (let exchange = 0; exchange < waysKm.length; exchange++) {
    const km = fromKm[exchange]! + toKm[exchange]!;
    let at = exchange;
    for (; at > 0 && waysKm[at - 1]! > km; at--) waysKm[at] = waysKm[at - 1]!;
    waysKm[at] = km;
  }
  return waysKm[Math.min(rank, waysKm.length - 1)] ?? 0;
}

export function arcKm(a: Direction, b: Direction): number {
  const dot = a.x * b.x + a.y * b.y + a.z * b.z;
  return earthRadiusKm * Math.acos(Math.min(1, Math.max(-1, dot)));
}

export function unitVector(latitude: number, longitude: number): Direction {
  const phi = (latitude * Math.PI) / 180;
  const lambda = (longitude * Math.PI) / 180;
  return { x: Math.cos(phi) * Math.cos(lambda), y: Math.cos(phi) * Math.sin(lambda), z: Math.sin(phi) };
}
