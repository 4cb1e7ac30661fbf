/**
 * How hard a world is for a delegation policy, as figures that a measured matrix has too: the generated
 * world is calibrated against them, so that it flatters no policy.
 */
import { type InstanceTarget, instanceOf, type LatencyInstance } from "#ops/world/compare";
import type { World } from "#ops/world/model";
import { SeededRandom } from "#ops/world/seeded-random";

export interface WorldFigures extends TriangleFigures {
  readonly crawlers: number;
  readonly sites: number;
  /** RTT of the best crawler in ms: quartiles over the sites. */
  readonly bestMs: Quartiles;
  /** From the best crawler to the runner-up in ms: quartiles over the sites. */
  readonly gapMs: Quartiles;
  /** Share of sites whose best crawler is the commonest best one of the other sites registered in that country (ties count by their share). */
  readonly countryPredictsBest: number;
  /** The same by holder; a site whose holder has no other counts as a miss. */
  readonly holderPredictsBest: number;
  /** Share of sites whose holder has others: of those alone, the prior of a holder can speak. */
  readonly holderHasOthers: number;
  /** Sites by leaves: how often a site needs no probe because its range is delegated. */
  readonly sitesPerLeaf: number;
  /** Share of crawlers within 5 ms of the best, mean over the sites: what choosing at random gets. */
  readonly randomWithin5Ms: number;
  /** Mean RTT over all crawlers by mean RTT of the best. */
  readonly randomToBest: number;
}

export interface Quartiles {
  readonly p25: number;
  readonly median: number;
  readonly p75: number;
}

export function worldFigures(world: World): WorldFigures {
  return instanceFigures(instanceOf(world), world.seed);
}

export function instanceFigures(instance: LatencyInstance, seed = 1): WorldFigures {
  const { targets } = instance;
  const rows = targets.map((target) => bestOf(target.rtt));
  const meanBest = mean(rows.map((row) => row.bestMs));
  return {
    crawlers: instance.crawlers.length,
    sites: targets.length,
    ...triangleFigures(instance, seed),
    bestMs: quartiles(rows.map((row) => row.bestMs)),
    gapMs: quartiles(rows.map((row) => row.gapMs)),
    countryPredictsBest: predictability(
      targets.map((target) => target.cc),
      rows,
    ),
    holderPredictsBest: predictability(
      targets.map((target) => target.org),
      rows,
    ),
    holderHasOthers: 1 - countOfSingles(targets.map((target) => target.org)) / Math.max(1, targets.length),
    sitesPerLeaf: targets.length / Math.max(1, new Set(targets.map(({ path }) => path.join("/"))).size),
    randomWithin5Ms: mean(
      targets.map((target, index) => {
        const limit = (rows[index]?.bestMs ?? 0) + 5;
        return target.rtt.filter((rtt) => rtt <= limit).length / target.rtt.length;
      }),
    ),
    randomToBest: mean(targets.map((target) => mean(target.rtt))) / meanBest,
  };
}

interface Best {
  readonly best: number;
  readonly bestMs: number;
  readonly gapMs: number;
}

function bestOf(rtt: readonly number[]): Best {
  let best = 0;
  let second = Number.POSITIVE_INFINITY;
  for (let index = 1; index < rtt.length; index++) {
    const value = rtt[index] as number;
    if (value < (rtt[best] as number)) {
      second = rtt[best] as number;
      best = index;
    } else if (value < second) second = value;
  }
  const bestMs = rtt[best] ?? 0;
  return { best, bestMs, gapMs: Number.isFinite(second) ? second - bestMs : 0 };
}

/** Names that occur once. */
function countOfSingles(names: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts.values()].filter((count) => count === 1).length;
}

/** Leave-one-out: how often the rest of its group names a site's best crawler. */
function predictability(groups: readonly string[], rows: readonly Best[]): number {
  const counts = new Map<string, Map<number, number>>();
  rows.forEach((row, index) => {
    const group = counts.get(groups[index] ?? "") ?? new Map<number, number>();
    group.set(row.best, (group.get(row.best) ?? 0) + 1);
    counts.set(groups[index] ?? "", group);
  });
  const hits = rows.map((row, index) => {
    const others = [...(counts.get(groups[index] ?? "") ?? [])].map(
      ([crawler, count]) => [crawler, crawler === row.best ? count - 1 : count] as const,
    );
    const most = Math.max(...others.map(([, count]) => count));
    const leaders = others.filter(([, count]) => count === most).map(([crawler]) => crawler);
    return most > 0 && leaders.includes(row.best) ? 1 / leaders.length : 0;
  });
  return mean(hits);
}

function quartiles(values: readonly number[]): Quartiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { p25: at(0.25), median: at(0.5), p75: at(0.75) };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

// What the triangle inequality is worth in a world or a measured matrix: how often it fails, whom an answer
// rules out, how well it tells who is nearest. All of it without a policy.

interface TriangleFigures {
  /** Share of triangles (two crawlers, one site) with one side longer than the two others together. */
  readonly triangleViolationShare: number;
  /** Share of triangles with a side over 1.2 times the two others and 1 ms more. */
  readonly severeViolationShare: number;
  /** Share of sites whose best crawler is the one nearest, among crawlers, to the second best. */
  readonly bestIsNextToSecond: number;
  /**
   * One crawler drawn at random answers after y ms and ranks the others by |D − y|, where D is their distance
   * to it: mean place of the best among them, 0 for the first and 1 for the last.
   */
  readonly fitRankOfBest: number;
  /** Share of sites whose best crawler is among the first tenth (at least one) of that ranking. */
  readonly fitFindsBest: number;
  /** When the best has answered after y ms: mean number of others with |D − y| below y, who may be nearer still. */
  readonly openAfterBest: number;
  /** Median of |D − y| over y, where D is the best crawler's distance to another and y the site's to that other. */
  readonly bestStandsInError: number;
  /** log2 of how many times as many crawlers are within twice the radius that holds an eighth of them, median. */
  readonly growthDimension: number;
}

/** At most this many triangles are looked at, drawn by the seed beyond that. */
const triangleLimit = 400_000;

function triangleFigures(instance: LatencyInstance, seed: number): TriangleFigures {
  const random = new SeededRandom(seed ^ 0x7472);
  const { targets, crawlerRtt } = instance;
  const several = targets
    .filter(({ rtt }) => rtt.length > 1)
    .map(({ rtt }) => ({ rtt, order: orderOf(rtt) }));
  const ranks = several.map(({ rtt, order }) =>
    fitRank({ rtt, best: order[0] as number, crawlerRtt, random }),
  );
  return {
    ...violations(instance, seed),
    bestIsNextToSecond: share(several, ({ order }) => isNextToSecond(order, crawlerRtt)),
    fitRankOfBest: mean(ranks.map(({ place }) => place)),
    fitFindsBest: share(ranks, ({ isFound }) => isFound),
    openAfterBest: mean(several.map(({ rtt, order }) => openAfter(rtt, order[0] as number, crawlerRtt))),
    bestStandsInError: median(
      several.map(({ rtt, order }) => standInError(rtt, order[0] as number, crawlerRtt)),
    ),
    growthDimension: median(several.map(({ rtt, order }) => growth(rtt, order))),
  };
}

type Rows = LatencyInstance["crawlerRtt"];

/** Crawlers from the nearest to the farthest. */
function orderOf(rtt: readonly number[]): number[] {
  return rtt.map((_, index) => index).sort((a, b) => (rtt[a] as number) - (rtt[b] as number));
}

function isNextToSecond([best, second]: readonly number[], crawlerRtt: Rows): boolean {
  const row = crawlerRtt[second as number] ?? [];
  const toBest = row[best as number] as number;
  return row.every((rttMs, other) => other === second || rttMs >= toBest);
}

function fitRank(of: {
  readonly rtt: readonly number[];
  readonly best: number;
  readonly crawlerRtt: Rows;
  readonly random: SeededRandom;
}): { place: number; isFound: boolean } {
  const { rtt, best, crawlerRtt, random } = of;
  const asked = (best + random.integer(1, rtt.length - 1)) % rtt.length;
  const row = crawlerRtt[asked] as readonly number[];
  const y = rtt[asked] as number;
  const gapOf = (crawler: number) => Math.abs((row[crawler] as number) - y);
  const better = rtt.filter((_, other) => other !== asked && gapOf(other) < gapOf(best)).length;
  const others = rtt.length - 1;
  return { place: others < 2 ? 0 : better / (others - 1), isFound: better < Math.max(1, others / 10) };
}

function openAfter(rtt: readonly number[], best: number, crawlerRtt: Rows): number {
  const y = rtt[best] as number;
  const row = crawlerRtt[best] as readonly number[];
  return row.filter((rttMs, other) => other !== best && Math.abs(rttMs - y) < y).length;
}

function standInError(rtt: readonly number[], best: number, crawlerRtt: Rows): number {
  const row = crawlerRtt[best] as readonly number[];
  return median(
    rtt.flatMap((y, other) => (other === best || y === 0 ? [] : [Math.abs((row[other] as number) - y) / y])),
  );
}

function growth(rtt: readonly number[], order: readonly number[]): number {
  const within = Math.max(2, Math.round(rtt.length / 8));
  const radiusMs = rtt[order[within - 1] as number] as number;
  return Math.log2(rtt.filter((rttMs) => rttMs <= 2 * radiusMs).length / within);
}

function violations(
  instance: LatencyInstance,
  seed: number,
): { triangleViolationShare: number; severeViolationShare: number } {
  let violated = 0;
  let severe = 0;
  let seen = 0;
  for (const sides of triangles(instance, seed)) {
    const longest = Math.max(...sides);
    const others = sides[0] + sides[1] + sides[2] - longest;
    seen++;
    if (longest > others + 1e-9) violated++;
    if (longest > 1.2 * others + 1) severe++;
  }
  const total = Math.max(1, seen);
  return { triangleViolationShare: violated / total, severeViolationShare: severe / total };
}

function* triangles(instance: LatencyInstance, seed: number): Generator<[number, number, number]> {
  const { crawlerRtt, targets } = instance;
  const crawlers = crawlerRtt.length;
  const sides = (target: InstanceTarget | undefined, a: number, b: number): [number, number, number] => [
    crawlerRtt[a]?.[b] ?? 0,
    target?.rtt[a] ?? 0,
    target?.rtt[b] ?? 0,
  ];
  if ((targets.length * crawlers * (crawlers - 1)) / 2 <= triangleLimit) {
    for (const target of targets) {
      for (let a = 0; a < crawlers; a++) for (let b = a + 1; b < crawlers; b++) yield sides(target, a, b);
    }
    return;
  }
  const random = new SeededRandom(seed);
  for (let drawn = 0; drawn < triangleLimit; drawn++) {
    const a = random.integer(0, crawlers - 1);
    const b = (a + random.integer(1, crawlers - 1)) % crawlers;
    yield sides(random.pick(targets), a, b);
  }
}

function share<T>(items: readonly T[], isOne: (item: T) => boolean): number {
  return items.filter(isOne).length / Math.max(1, items.length);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
