/**
 * How long a round trip takes in a generated world. Light in fibre travels at about two thirds of c, so a
 * great-circle kilometre costs 0.010 ms there and back. On top come, each fixed by the seed:
 *   - inflation per pair of countries: cables do not follow great circles;
 *   - peering per pair of networks: a factor, and for some pairs a detour over an exchange city, because
 *     they do not meet at home. Detours are why the triangle inequality fails on the real Internet too;
 *   - a last mile per host, and a little that belongs to the pair of hosts alone.
 * `worldFigures` holds the result against measured matrices.
 */
import { hashNormal, hashUnit } from "./seeded-random.ts";

/** One host's place in the network. */
export interface Endpoint {
  /** Distinct per host: the pair's own part of the RTT hangs on it. */
  readonly id: number;
  /** Unit vector of latitude and longitude: a distance is then one arc cosine. */
  readonly x: number;
  readonly y: number;
  readonly z: number;
  readonly country: number;
  readonly network: number;
  readonly lastMileMs: number;
}

/** 2 · 1 km / (2/3 · 299.792 km/ms). */
const rttMsPerKm = 0.010007;
const earthRadiusKm = 6371;

/** Chosen so that `worldFigures` of the generated world lie where measured matrices lie. */
const calibration = {
  inflationAbroad: { median: 1.4, sigma: 0.07 },
  inflationAtHome: { median: 1.5, sigma: 0.15 },
  peeringSigma: 0.055,
  meetingMs: 10,
  detourShare: 0.14,
  /** Rank of the exchange (by the detour's length) that a pair of networks may use. */
  detourRanks: 3,
  pairMs: 2.5,
} as const;

export interface NetworkModel {
  readonly seed: number;
  readonly exchanges: readonly { readonly x: number; readonly y: number; readonly z: number }[];
}

export function unitVector(latitude: number, longitude: number): { x: number; y: number; z: number } {
  const phi = (latitude * Math.PI) / 180;
  const lambda = (longitude * Math.PI) / 180;
  return { x: Math.cos(phi) * Math.cos(lambda), y: Math.cos(phi) * Math.sin(lambda), z: Math.sin(phi) };
}

/** Undisturbed round-trip time in ms, the same in both directions, rounded to 0.01 ms. */
export function rttBetween(model: NetworkModel, a: Endpoint, b: Endpoint): number {
  const [p, q] = a.id <= b.id ? [a, b] : [b, a];
  const path = pathKm(model, p, q) * rttMsPerKm * inflation(model.seed, p, q);
  const own = hashUnit(model.seed ^ 0x11, p.id, q.id) * calibration.pairMs;
  const added = path + meetingMs(model.seed, p, q) + p.lastMileMs + q.lastMileMs + own;
  return Math.round(added * 100) / 100;
}

/** Where two networks meet costs time of its own: exponential per pair of networks. */
function meetingMs(seed: number, p: Endpoint, q: Endpoint): number {
  if (p.network === q.network) return 0;
  const [low, high] = ordered(p.network, q.network);
  return Math.min(60, -calibration.meetingMs * Math.log(1 - hashUnit(seed ^ 0x55, low, high)));
}

function pathKm(model: NetworkModel, p: Endpoint, q: Endpoint): number {
  const directKm = arcKm(p, q);
  if (p.network === q.network) return directKm;
  const [low, high] = ordered(p.network, q.network);
  const draw = hashUnit(model.seed ^ 0x22, low, high);
  if (draw >= calibration.detourShare) return directKm;
  const rank = Math.floor((draw / calibration.detourShare) * calibration.detourRanks);
  const lengths = model.exchanges.map((exchange) => arcKm(p, exchange) + arcKm(exchange, q));
  lengths.sort((left, right) => left - right);
  return lengths[Math.min(rank, lengths.length - 1)] ?? directKm;
}

function inflation(seed: number, p: Endpoint, q: Endpoint): number {
  const [low, high] = ordered(p.country, q.country);
  const { median, sigma } =
    p.country === q.country ? calibration.inflationAtHome : calibration.inflationAbroad;
  const countries = median * Math.exp(sigma * hashNormal(seed ^ 0x33, low, high));
  const [lowNetwork, highNetwork] = ordered(p.network, q.network);
  const peering = Math.exp(calibration.peeringSigma * hashNormal(seed ^ 0x44, lowNetwork, highNetwork));
  return Math.max(1, countries * peering);
}

function arcKm(
  a: { readonly x: number; readonly y: number; readonly z: number },
  b: { readonly x: number; readonly y: number; readonly z: number },
): number {
  const dot = a.x * b.x + a.y * b.y + a.z * b.z;
  return earthRadiusKm * Math.acos(Math.min(1, Math.max(-1, dot)));
}

function ordered(a: number, b: number): [number, number] {
  return a <= b ? [a, b] : [b, a];
}
