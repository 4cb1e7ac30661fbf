/**
 * The web and the fleet of a recrawl simulation, drawn from a seed: hosts ("channels") with their groups and pages,
 * crawlers with their bandwidth, and how long a page takes from each crawler that is near (section 4 of the paper).
 */
import { SeededRandom } from "#ops/world/seeded-random";
import { nearestCrawlers, replicatedNodes } from "./network.ts";
import type { RecrawlScenario } from "./scenario.ts";

export interface RecrawlWorld {
  /** Of each channel: index into `changeMinutes`. */
  readonly group: Uint8Array;
  readonly pages: Float64Array;
  /** How many of `nearest` belong to a channel. */
  readonly neighbours: number;
  /** The crawlers near channel c, nearest first: entries from c · neighbours on. */
  readonly nearest: Int32Array;
  /** Beside `nearest`: time of one page. */
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

/** As many channels of each group as its weight says, in random order. */
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

/** Log-normal, with the mean that is asked for to the page before the longest are cut; hosts share counts as replicas do. */
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
