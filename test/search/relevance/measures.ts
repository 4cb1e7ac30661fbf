/**
 * How good an order of pages is for one question whose relevant pages are known (Manning, Raghavan and Schütze 2008, chapter 8).
 * A page's grade says how relevant it is; 0 and pages that are not named are not relevant.
 */

export type Grades = ReadonlyMap<string, number>;

export interface Measures {
  /** Discounted cumulative gain of the first ten, as a share of the best order's: gain 2^grade − 1 (Burges et al. 2005). */
  readonly ndcg: number;
  /** 1 / the place of the first relevant page; 0 if there is none. */
  readonly reciprocalRank: number;
  /** 1 if the first page is relevant, otherwise 0. */
  readonly success: number;
}

const depth = 10;

export function measuresOf(ranked: readonly string[], grades: Grades): Measures {
  const gained = gain(ranked.map((page) => grades.get(page) ?? 0));
  const best = gain([...grades.values()].sort((a, b) => b - a));
  const first = ranked.findIndex((page) => (grades.get(page) ?? 0) > 0);
  return {
    ndcg: gained / best,
    reciprocalRank: first < 0 ? 0 : 1 / (first + 1),
    success: first === 0 ? 1 : 0,
  };
}

function gain(grades: readonly number[]): number {
  return grades
    .slice(0, depth)
    .reduce((sum, grade, index) => sum + (2 ** grade - 1) / Math.log2(index + 2), 0);
}

export function meanOf(all: readonly Measures[]): Measures {
  const mean = (name: keyof Measures) => all.reduce((sum, one) => sum + one[name], 0) / all.length;
  return { ndcg: mean("ndcg"), reciprocalRank: mean("reciprocalRank"), success: mean("success") };
}
