/**
 * Freshness of one page: the share of time in which the stored copy is the current one, when the page changes as a
 * Poisson process (λ a day) and is fetched f times a day at even distances: (f/λ)(1 − e^(−λ/f)) (J. Cho, H. Garcia-
 * Molina, "Effective page refresh policies for web crawlers", ACM TODS 28(4), 2003). Even distances and not random
 * ones (f/(f + λ), Azar et al. 2018), for that is how a URL is fetched here: its next time is set at its result. They
 * also are never worse.
 */
export function freshnessOf(fetchesPerDay: number, changesPerDay: number): number {
  if (changesPerDay === 0) return 1;
  if (fetchesPerDay === 0) return 0;
  const changesPerFetch = changesPerDay / fetchesPerDay;
  return changesPerFetch === 0 ? 1 : -Math.expm1(-changesPerFetch) / changesPerFetch;
}

/**
 * The rate at which one more fetch a day adds `multiplier` to importance times freshness: with x = λ/f changes between
 * fetches, importance/λ · (1 − (1 + x)e^(−x)) = multiplier. 0 where even the first fetch adds less: a page that changes
 * too often, or matters too little, is left alone.
 */
export function rateAtMultiplier(changesPerDay: number, importance: number, multiplier: number): number {
  const share = (multiplier * changesPerDay) / importance;
  if (!(changesPerDay > 0) || !(share < 1)) return 0;
  return changesPerDay / changesPerFetchAt(share);
}

/** The x with 1 − (1 + x)e^(−x) = share, for a share in (0, 1): from a table, then by Halley's steps to about 1e-13. */
export function changesPerFetchAt(share: number): number {
  if (share < 1e-8) return seriesRoot(share);
  let x = share < tableEnd ? fromTable(share) : nearOne(1 - share);
  for (let step = 0; step < 20; step++) {
    const power = Math.exp(-x);
    const newton = (1 - (1 + x) * power - share) / (x * power);
    // The second derivative over the first is 1/x − 1.
    const change = newton / (1 - (newton * (1 / x - 1)) / 2);
    x -= change;
    // Steps shrink to their cube: the next one would be below 1e-13.
    if (Math.abs(change) <= 3e-5 * x) break;
  }
  return x;
}

/** Up to here x is read from a table over the root of the share, along which it is nearly straight. */
const tableEnd = 0.99;
const tableSteps = 1024;
const table = Float64Array.from({ length: tableSteps + 2 }, (_, step) => slowRoot((step / tableSteps) ** 2));

function fromTable(share: number): number {
  const at = Math.sqrt(share) * tableSteps;
  const step = Math.floor(at);
  return table[step]! + (at - step) * (table[step + 1]! - table[step]!);
}

/** By halving; for the table. */
function slowRoot(share: number): number {
  let [low, high] = [0, 50];
  while (high - low > 1e-12) {
    const middle = (low + high) / 2;
    if (-Math.expm1(-middle) - middle * Math.exp(-middle) < share) low = middle;
    else high = middle;
  }
  return low;
}

/** (1 + x)e^(−x) = rest: x = ln((1 + x)/rest), three times over. */
function nearOne(rest: number): number {
  const first = -Math.log(rest) + 1;
  const second = Math.log1p(first) - Math.log(rest);
  return Math.log1p(second) - Math.log(rest);
}

/** x²/2 − x³/3 = share, where the closed form would cancel out. */
function seriesRoot(share: number): number {
  const x = Math.sqrt(2 * share);
  return x * (1 + x / 3);
}
