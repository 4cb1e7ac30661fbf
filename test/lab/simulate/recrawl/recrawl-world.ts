/**
 * The web and the fleet of a recrawl simulation, drawn from a seed: hosts ("channels") with groups and pages, crawlers with
 * bandwidths, and the time of a page from each near crawler (section 4 of the paper).
 */
import { SeededRandom } from "#ops/world/seeded-random";
import { paperChannels, type RecrawlScenario } from "./scenario.ts";

export interface RecrawlWorld {
  /** Of each channel: index into `changeMinutes`. */
  readonly group: Uint8Array;
  readonly pages: Float64Array;
  /** Entries of `nearest` per channel. */
  readonly neighbours: number;
  /** The crawlers near channel c, nearest first, starting at entry c · neighbours. */
  readonly nearest: Int32Array;
  /** Parallel to `nearest`: time of one page. */
  readonly pageSeconds: Float32Array;
}

/** The bandwidth levels, and the density of N(1, 0.5) at 0, 1 and 2: about 11, 79 and 11 of 100. */
const levels = [
  { bitsPerSecond: 512_000, weight: Math.exp(-2) },
  { bitsPerSecond: 1_024_000, weight: 1 },
  { bitsPerSecond: 2_048_000, weight: Math.exp(-2) },
] as const;

/** Hosts that were crawled for the paper's data set; each was replicated to fill 16,000 channels. */
const crawledHosts = 1738;

export function recrawlWorld(scenario: RecrawlScenario): RecrawlWorld {
  const random = new SeededRandom(scenario.seed);
  const network = replicatedNodes(scenario, random);
  const neighbours = Math.min(scenario.neighbours, scenario.crawlers);
  const nearest = nearestCrawlers(network, neighbours);
  const speeds = Float64Array.from(
    { length: scenario.crawlers },
    () => random.pickWeighted(levels, ({ weight }) => weight).bitsPerSecond / scenario.threads,
  );
  return {
    group: groups(scenario, random),
    pages: pages(scenario, random),
    neighbours,
    nearest: nearest.crawlers,
    pageSeconds: nearest.latencyMs.map(
      (latencyMs, at) =>
        (2 * latencyMs + scenario.waitMs) / 1000 + (8 * scenario.pageBytes) / speeds[nearest.crawlers[at]!]!,
    ),
  };
}

/** Channels of each group by its weight, in random order. */
function groups({ channels, groupWeights }: RecrawlScenario, random: SeededRandom): Uint8Array {
  const total = groupWeights.reduce((sum, weight) => sum + weight, 0);
  let upTo = 0;
  const ends = groupWeights.map((weight) => {
    upTo += weight;
    return Math.round((upTo / total) * channels);
  });
  const sorted = Uint8Array.from({ length: channels }, (_, at) => ends.findIndex((end) => at < end));
  return shuffled(sorted, random);
}

/** Log-normal with the given mean before cutting the longest; hosts share counts as replicas do. */
function pages(scenario: RecrawlScenario, random: SeededRandom): Float64Array {
  const { channels, meanPages, pagesSpread, mostPages } = scenario;
  const drawn = Float64Array.from({ length: Math.min(crawledHosts, channels) }, () =>
    Math.exp(pagesSpread * random.normal()),
  );
  const scale = (meanPages * drawn.length) / drawn.reduce((sum, value) => sum + value, 0);
  const all = Float64Array.from({ length: channels }, (_, at) =>
    Math.min(mostPages, Math.max(1, Math.round(scale * drawn[at % drawn.length]!))),
  );
  return shuffled(all, random);
}

function shuffled<Values extends Uint8Array | Float64Array>(values: Values, random: SeededRandom): Values {
  for (let at = values.length - 1; at > 0; at -= 1) {
    const other = random.integer(0, at);
    [values[at], values[other]] = [values[other]!, values[at]!];
  }
  return values;
}

// Latencies between hosts and crawlers. The paper takes the King data set (1,740 name servers), embeds it by Vivaldi
// and replicates nodes around the originals. That data set is not part of this project; the originals are drawn here:
// five regions of a plane in ms of one-way latency, with a height per node for its access line (as Vivaldi has it), so
// that two nodes are 60 to 70 ms apart in the middle and those of a region about 20. The replicas are the paper's: at 10 to
// 50 % of the distance between an original and its nearest neighbour.

/** Places in ms of one-way latency; between two nodes the distance in the plane and both heights. */
interface Nodes {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly height: Float64Array;
}

interface Network {
  readonly hosts: Nodes;
  readonly crawlers: Nodes;
}

interface Nearest {
  /** `neighbours` crawlers for each host, nearest first. */
  readonly crawlers: Int32Array;
  /** One-way latency, parallel to `crawlers`. */
  readonly latencyMs: Float32Array;
}

/** Share of the nodes, and centre, in ms. */
const regions = [
  { share: 0.15, x: 0, y: 0 },
  { share: 0.3, x: 32, y: 0 },
  { share: 0.3, x: 72, y: 10 },
  { share: 0.15, x: -55, y: -25 },
  { share: 0.1, x: 45, y: -60 },
] as const;

const regionDeviationMs = 8;
const heightMedianMs = 4;
const heightSpread = 0.8;

/** Originals among the paper's 16,000 hosts and 1,400 crawlers: a tenth. */
const replicas = 10;

const originalCrawlers = 140;

function replicatedNodes({ channels, crawlers }: RecrawlScenario, random: SeededRandom): Network {
  const hostOriginals = Math.ceil(channels / replicas);
  const crawlerOriginals = Math.ceil((originalCrawlers * channels) / paperChannels);
  const originals = drawn(hostOriginals + crawlerOriginals, random);
  const gaps = nearestGaps(originals);
  const around = (count: number, from: number, to: number) => {
    const nodes = empty(count);
    for (let at = 0; at < count; at += 1)
      replicate({ nodes, at, originals, original: from + (at % (to - from)), gaps }, random);
    return nodes;
  };
  return {
    hosts: around(channels, 0, hostOriginals),
    crawlers: around(crawlers, hostOriginals, hostOriginals + crawlerOriginals),
  };
}

/** By distance in the plane, which decides a host's zone of the overlay. */
function nearestCrawlers({ hosts, crawlers }: Network, neighbours: number): Nearest {
  const nearest = {
    crawlers: new Int32Array(hosts.x.length * neighbours),
    latencyMs: new Float32Array(hosts.x.length * neighbours),
  };
  const distances = new Float64Array(neighbours);
  for (let host = 0; host < hosts.x.length; host += 1) {
    const chosen = nearest.crawlers.subarray(host * neighbours, (host + 1) * neighbours);
    let filled = 0;
    for (let crawler = 0; crawler < crawlers.x.length; crawler += 1) {
      const squared =
        (hosts.x[host]! - crawlers.x[crawler]!) ** 2 + (hosts.y[host]! - crawlers.y[crawler]!) ** 2;
      if (filled === neighbours && squared >= distances[filled - 1]!) continue;
      if (filled < neighbours) filled += 1;
      let at = filled - 1;
      for (; at > 0 && distances[at - 1]! > squared; at -= 1) {
        distances[at] = distances[at - 1]!;
        chosen[at] = chosen[at - 1]!;
      }
      distances[at] = squared;
      chosen[at] = crawler;
    }
    for (let at = 0; at < neighbours; at += 1)
      nearest.latencyMs[host * neighbours + at] =
        Math.sqrt(distances[at]!) + hosts.height[host]! + crawlers.height[chosen[at]!]!;
  }
  return nearest;
}

function drawn(count: number, random: SeededRandom): Nodes {
  const nodes = empty(count);
  for (let at = 0; at < count; at += 1) {
    const region = random.pickWeighted(regions, ({ share }) => share);
    nodes.x[at] = region.x + regionDeviationMs * random.normal();
    nodes.y[at] = region.y + regionDeviationMs * random.normal();
    nodes.height[at] = heightMedianMs * Math.exp(heightSpread * random.normal());
  }
  return nodes;
}

/** Of each node, the distance to its nearest neighbour. */
function nearestGaps({ x, y }: Nodes): Float64Array {
  return Float64Array.from(x, (_, at) => {
    let least = Number.POSITIVE_INFINITY;
    for (let other = 0; other < x.length; other += 1)
      if (other !== at) least = Math.min(least, (x[at]! - x[other]!) ** 2 + (y[at]! - y[other]!) ** 2);
    return least === Number.POSITIVE_INFINITY ? 0 : Math.sqrt(least);
  });
}

interface Replica {
  readonly nodes: Nodes;
  readonly at: number;
  readonly originals: Nodes;
  readonly original: number;
  readonly gaps: Float64Array;
}

function replicate({ nodes, at, originals, original, gaps }: Replica, random: SeededRandom): void {
  const distance = (0.1 + 0.4 * random.next()) * gaps[original]!;
  const angle = 2 * Math.PI * random.next();
  nodes.x[at] = originals.x[original]! + distance * Math.cos(angle);
  nodes.y[at] = originals.y[original]! + distance * Math.sin(angle);
  nodes.height[at] = originals.height[original]!;
}

function empty(count: number): Nodes {
  return { x: new Float64Array(count), y: new Float64Array(count), height: new Float64Array(count) };
}
