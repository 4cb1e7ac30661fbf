/**
 * Fleets larger than a measured matrix of round trips: hosts are drawn from its nodes with replacement. Each
 * copy has a last mile and a stretch of its own, and each pair a little noise, so that copies of one node are near to
 * each other and never in one place. The last mile is added on both sides and the stretch is small, so triangles hold
 * or break as they did among the nodes.
 *
 * The matrices have no registry with them. Two trees are made up: one from who the nodes are, with a share of the
 * hosts filed under another node; and one loosely from the round trips, which says no more than the region and the
 * area, again not of all hosts.
 */
import type { SimulatedHost, SimulationInstance } from "#coordinator/place/delegation/simulation/simulation";
import { hashNormal, SeededRandom } from "#ops/world/seeded-random";

/** Square, symmetric, in ms. */
export type LatencyMatrix = readonly (readonly number[])[];

export type TreeKind = "nodes" | "loose";

const lastMileMeanMs = 1;
/** Standard deviations of the logarithms. */
const stretchSpread = 0.04;
const noiseSpread = 0.03;
const misfiledShare: Readonly<Record<TreeKind, number>> = { nodes: 0.2, loose: 0.3 };
const [regions, areas] = [8, 45] as const;

interface NodeCopy extends SimulatedHost, DrawnHost {
  readonly copy: number;
  readonly node: number;
  readonly stretch: number;
}

export function drawnFleet(
  matrix: LatencyMatrix,
  { crawlers, sites, seed, tree }: InstanceSize & { readonly tree: TreeKind },
): SimulationInstance {
  const random = new SeededRandom(seed ^ 0x6472776e);
  const file = filing(matrix, random, tree);
  const copies = Array.from({ length: crawlers + sites }, (_, copy): NodeCopy => {
    const node = random.integer(0, matrix.length - 1);
    const lastMileMs = 0.1 + random.exponential(lastMileMeanMs);
    return {
      copy,
      node,
      lastMileMs,
      stretch: Math.exp(stretchSpread * random.normal()),
      ...file(node, copy),
    };
  });
  return instanceOf({
    crawlers: copies.slice(0, crawlers),
    targets: copies.slice(crawlers),
    rttMs: (a, b) => {
      const noise = Math.exp(
        noiseSpread * hashNormal(seed, Math.min(a.copy, b.copy), Math.max(a.copy, b.copy)),
      );
      const nodesMs = matrix[a.node]![b.node]! * a.stretch * b.stretch * noise;
      return nodesMs + a.lastMileMs + b.lastMileMs;
    },
  });
}

type Filing = (node: number, copy: number) => SimulatedHost;

/** The nearest of a few nodes is a node's region, of a few more its area. */
function filing(matrix: LatencyMatrix, random: SeededRandom, tree: TreeKind): Filing {
  const drawNode = () => random.integer(0, matrix.length - 1);
  const middles = (count: number) => Array.from({ length: Math.min(count, matrix.length) }, drawNode);
  const nearest = (of: readonly number[]) =>
    matrix.map((row) =>
      of.reduce((best, middle, index) => (row[middle]! < row[of[best]!]! ? index : best), 0),
    );
  const [regionOf, areaOf] = [nearest(middles(regions)), nearest(middles(areas))];
  return (node, copy) => {
    const filed = random.chance(misfiledShare[tree]) ? drawNode() : node;
    const [region, area] = [regionOf[filed]!, areaOf[filed]!];
    // Both say so little of a range: which of a network's many it is in.
    const range = random.integer(0, 19);
    return tree === "nodes"
      ? {
          path: ["root", `region ${region}`, `area ${area}`, `site ${filed}`, `host ${copy}`],
          org: `site ${filed}`,
          cc: `c${areaOf[node]! >> 1}`,
        }
      : {
          path: ["root", `region ${region}`, `block ${region}.${range}`, `host ${copy}`],
          org: random.chance(0.5) ? `network ${area}.${range % 3}` : "",
          cc: `c${area >> 1}`,
        };
  };
}

// What the models of this folder have in common: hosts, a round trip between any two, and an instance made of both.

export interface InstanceSize {
  readonly crawlers: number;
  readonly sites: number;
  readonly seed: number;
}

export interface DrawnHost {
  /** What the last stretch to it takes, of a round trip. */
  readonly lastMileMs: number;
}

/** Symmetric, 0 from a crawler to itself; a target's row is made when it is read. */
export function instanceOf<Host extends SimulatedHost>(of: {
  readonly crawlers: readonly Host[];
  readonly targets: readonly Host[];
  readonly rttMs: (a: Host, b: Host) => number;
}): SimulationInstance {
  const { crawlers, targets, rttMs } = of;
  const crawlerRtt = crawlers.map(() => new Array<number>(crawlers.length).fill(0));
  crawlers.forEach((crawler, index) => {
    for (let other = 0; other < index; other++) {
      const ms = rttMs(crawlers[other]!, crawler);
      crawlerRtt[index]![other] = ms;
      crawlerRtt[other]![index] = ms;
    }
  });
  const host = ({ path, org, cc }: Host): SimulatedHost => ({ path, org, cc });
  return {
    crawlers: crawlers.map(host),
    crawlerRtt,
    targets: targets.map((target) => ({
      ...host(target),
      get rtt() {
        return Float64Array.from(crawlers, (crawler) => rttMs(crawler, target));
      },
    })),
  };
}
