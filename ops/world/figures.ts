/**
 * How hard a world is for a delegation policy, as figures that a measured matrix has too: the generated
 * world is calibrated against them, so that it flatters no policy.
 */
import { instanceOf } from "./compare.ts";
import type { LatencyInstance } from "./instance.ts";
import type { World } from "./model.ts";
import { type TriangleFigures, triangleFigures } from "./triangle-figures.ts";

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
