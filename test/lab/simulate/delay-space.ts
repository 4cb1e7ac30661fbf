/**
 * Instances from a delay space without geography, by a few rules about measured delay matrices. Nothing was tuned on them, and no
 * constant was chosen by a policy's result.
 *
 * - hosts form clusters, like continents; the distances between clusters are a random metric, which need fit no plane or sphere
 *   (Zhang et al., "Measurement-based analysis, modeling, and synthesis of the Internet delay space", IMC 2006, found the
 *   clusters);
 * - within a cluster a host has few coordinates and a height for its access link (Dabek et al., "Vivaldi", SIGCOMM 2004); to
 *   another cluster it goes through the gateway between the two;
 * - some pairs of neighbourhoods take a detour with a heavy tail, which breaks triangles;
 * - the tree names the neighbourhood with a reliability that differs by level and instance: from nearly always to hardly more than
 *   chance.
 */
import type { SimulatedHost, SimulationInstance } from "#coordinator/place/delegation/simulation/simulation";
import { hashUnit, SeededRandom } from "#ops/world/seeded-random";

const dimensions = 3;
const clusterCount = { least: 4, most: 9 } as const;
const neighbourhoodsPerCluster = { least: 8, most: 24 } as const;
/** Mean distance of a neighbourhood from its cluster's centre, and of a host from its neighbourhood's, in ms of RTT. */
const clusterRadiusMs = 14;
const neighbourhoodRadiusMs = 1.5;
const detourShare = 0.15;

type Point = readonly number[];

interface Neighbourhood {
  readonly cluster: number;
  readonly at: Point;
}

interface DrawnHost {
  /** RTT of its access link, in ms. */
  readonly lastMileMs: number;
}

interface PlacedHost extends SimulatedHost, DrawnHost {
  /** Position in the list of neighbourhoods. */
  readonly neighbourhood: number;
  readonly at: Point;
}

export function delaySpaceInstance(size: {
  readonly crawlers: number;
  readonly sites: number;
  readonly seed: number;
}): SimulationInstance {
  const random = new SeededRandom(size.seed ^ 0x64656c61);
  const space = new DelaySpace(random, size.seed);
  const tree = new DrawnTree(random, space.neighbourhoods);
  const hosts = (kind: string, count: number) =>
    Array.from({ length: count }, (_, index): PlacedHost => {
      const host = space.drawHost();
      return { ...host, ...tree.register(host.neighbourhood, `${kind} ${index}`) };
    });
  const [crawlers, targets] = [hosts("crawler", size.crawlers), hosts("site", size.sites)];
  const known = ({ path, org, cc }: PlacedHost): SimulatedHost => ({ path, org, cc });
  return {
    crawlers: crawlers.map(known),
    crawlerRtt: crawlers.map((a) => crawlers.map((b) => (a === b ? 0 : space.rttMs(a, b)))),
    targets: targets.map((target) => ({
      ...known(target),
      // Computed on reading, so that large instances need memory only for their hosts.
      get rtt() {
        return Float64Array.from(crawlers, (crawler) => space.rttMs(crawler, target));
      },
    })),
  };
}

class DelaySpace {
  readonly neighbourhoods: readonly Neighbourhood[];
  readonly #random: SeededRandom;
  readonly #seed: number;
  /** Between clusters, from gateway to gateway, in ms. */
  readonly #apartMs: readonly (readonly number[])[];
  /** By cluster: its gateways to the others. */
  readonly #gateways: readonly (readonly Point[])[];
  readonly #shares: readonly number[];

  constructor(random: SeededRandom, seed: number) {
    this.#random = random;
    this.#seed = seed;
    const count = random.integer(clusterCount.least, clusterCount.most);
    const clusters = Array.from({ length: count }, (_, index) => index);
    this.#apartMs = randomMetric(random, count);
    this.#gateways = clusters.map(() => clusters.map(() => drawPoint(random, clusterRadiusMs)));
    this.neighbourhoods = clusters.flatMap((cluster) =>
      Array.from(
        { length: random.integer(neighbourhoodsPerCluster.least, neighbourhoodsPerCluster.most) },
        () => ({ cluster, at: drawPoint(random, clusterRadiusMs) }),
      ),
    );
    // A few have most of the hosts.
    this.#shares = this.neighbourhoods.map(() => 1 / (0.05 + random.next()));
  }

  drawHost(): DrawnHost & { neighbourhood: number; at: Point } {
    const random = this.#random;
    const neighbourhood = random.pickWeighted(
      this.neighbourhoods.map((_, index) => index),
      (index) => this.#shares[index]!,
    );
    const off = drawPoint(random, neighbourhoodRadiusMs);
    const at = this.neighbourhoods[neighbourhood]!.at.map((value, axis) => value + off[axis]!);
    const lastMileMs = 0.1 + random.exponential(random.chance(0.15) ? 8 : 0.7);
    return { neighbourhood, at, lastMileMs };
  }

  rttMs(a: PlacedHost, b: PlacedHost): number {
    const [from, to] = [
      this.neighbourhoods[a.neighbourhood]!.cluster,
      this.neighbourhoods[b.neighbourhood]!.cluster,
    ];
    const pathMs =
      from === to
        ? distance(a.at, b.at)
        : distance(a.at, this.#gateways[from]![to]!) +
          this.#apartMs[from]![to]! +
          distance(b.at, this.#gateways[to]![from]!);
    return pathMs * this.#detour(a.neighbourhood, b.neighbourhood) + a.lastMileMs + b.lastMileMs;
  }

  /** Symmetric, and the same for all hosts of the two. Pareto above 1 with a tail index of 1.5, at most fourfold. */
  #detour(a: number, b: number): number {
    if (a === b) return 1;
    const [first, second] = [Math.min(a, b), Math.max(a, b)];
    if (hashUnit(this.#seed, first, second) >= detourShare) return 1;
    const tail = (1 - hashUnit(this.#seed + 1, first, second)) ** (-1 / 1.5);
    return Math.min(4, 1 + 0.2 * tail);
  }
}

/** Between 25 and 250 ms at first; then shortened to the shortest path through other clusters. */
function randomMetric(random: SeededRandom, count: number): number[][] {
  const metric = Array.from({ length: count }, () => new Array<number>(count).fill(0));
  for (let a = 0; a < count; a++)
    for (let b = 0; b < a; b++) metric[a]![b] = metric[b]![a] = 25 + 225 * random.next();
  for (let via = 0; via < count; via++)
    for (const row of metric)
      for (let to = 0; to < count; to++) row[to] = Math.min(row[to]!, row[via]! + metric[via]![to]!);
  return metric;
}

/** In a random direction, at a distance with a heavy tail. */
function drawPoint(random: SeededRandom, meanMs: number): Point {
  const direction = Array.from({ length: dimensions }, () => random.normal());
  const length = Math.hypot(...direction) || 1;
  const distanceMs = meanMs * 0.7 * Math.exp(0.85 * random.normal());
  return direction.map((value) => (value / length) * distanceMs);
}

function distance(a: Point, b: Point): number {
  let squares = 0;
  for (let axis = 0; axis < dimensions; axis++) squares += (a[axis]! - b[axis]!) ** 2;
  return Math.sqrt(squares);
}

type Level = "block" | "range" | "country" | "holder";

/** The registry's places of hosts. */
class DrawnTree {
  readonly #random: SeededRandom;
  readonly #neighbourhoods: readonly Neighbourhood[];
  /** Probability by level that the registry names the host's own place. */
  readonly #reliability: Readonly<Record<Level, number>>;

  constructor(random: SeededRandom, neighbourhoods: readonly Neighbourhood[]) {
    this.#random = random;
    this.#neighbourhoods = neighbourhoods;
    const draw = () => 0.15 + 0.8 * random.next();
    this.#reliability = { block: draw(), range: draw(), country: draw(), holder: draw() };
  }

  /** A quarter of the leaves have no holder. */
  register(neighbourhood: number, leaf: string): SimulatedHost {
    const random = this.#random;
    const said = (level: Level) =>
      random.chance(this.#reliability[level])
        ? neighbourhood
        : random.integer(0, this.#neighbourhoods.length - 1);
    const block = said("block");
    const { cluster } = this.#neighbourhoods[block]!;
    const range = random.chance(this.#reliability.range) ? block : random.integer(0, 200);
    const holder = `holder ${said("holder")}.${random.integer(0, 4)}`;
    return {
      path: [
        "root",
        `block ${cluster}.${block % 3}`,
        `allocation ${cluster}.${block % 7}`,
        `range ${range}`,
        leaf,
      ],
      org: random.chance(0.25) ? "" : holder,
      cc: `c${said("country") >> 1}`,
    };
  }
}
