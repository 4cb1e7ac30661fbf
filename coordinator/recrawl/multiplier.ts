/**
 * The multiplier at which rates sum to what there is. Their sum falls as it grows: Newton's steps on the logarithms of
 * both (the sum falls about as a power of it), kept within a bracket that each step narrows.
 */
export interface RateSum {
  rate: number;
  /** How fast the rate falls with the multiplier's logarithm: 0 or less. */
  slope: number;
}

/** The rates wanted are `shareOfLow` of those at `low` and the rest of those at `high`, which mostly are one. */
export interface Multiplier {
  readonly low: number;
  readonly high: number;
  readonly shareOfLow: number;
}

const smallest = 1e-300;
const largest = 1e300;

/** 0 where the sum stays below however small the multiplier. */
export function solveMultiplier(
  sumAt: (multiplier: number) => RateSum,
  wanted: number,
  start: number,
): Multiplier {
  if (sumAt(smallest).rate <= wanted) return { low: 0, high: 0, shareOfLow: 0 };
  const bracket: Bracket = {
    low: Math.log(smallest),
    high: Math.log(largest),
    lowRate: Infinity,
    highRate: 0,
  };
  let at = Math.log(Math.min(largest, Math.max(smallest, start)));
  for (let step = 0; step < 200 && bracket.high - bracket.low > 1e-14 * (1 + Math.abs(at)); step++) {
    const sum = sumAt(Math.exp(at));
    if (Math.abs(sum.rate - wanted) <= 1e-10 * wanted) return single(Math.exp(at));
    narrow(bracket, at, sum.rate, wanted);
    at = nextGuess(bracket, at, sum, wanted);
  }
  return mixed(bracket, wanted, sumAt);
}

const single = (multiplier: number) => ({ low: multiplier, high: multiplier, shareOfLow: 0 });

interface Bracket {
  low: number;
  high: number;
  lowRate: number;
  highRate: number;
}

function narrow(bracket: Bracket, at: number, rate: number, wanted: number): void {
  if (rate > wanted) {
    bracket.low = at;
    bracket.lowRate = rate;
  } else {
    bracket.high = at;
    bracket.highRate = rate;
  }
}

function nextGuess({ low, high }: Bracket, at: number, { rate, slope }: RateSum, wanted: number): number {
  const newton = at + (Math.log(wanted / rate) * rate) / slope;
  if (newton > low && newton < high) return newton;
  // A bracket of hundreds of units, hardly looked at, is gone through by steps and not by halves.
  if (high - low < 100) return (low + high) / 2;
  return rate > wanted ? Math.min(at + 3, (at + high) / 2) : Math.max(at - 3, (at + low) / 2);
}

/** The sum jumps over what is wanted: part of the one side, part of the other. */
function mixed(
  { low, high, highRate }: Bracket,
  wanted: number,
  sumAt: (multiplier: number) => RateSum,
): Multiplier {
  const [lowAt, highAt] = [Math.exp(low), Math.exp(high)];
  const lowRate = sumAt(lowAt).rate;
  return { low: lowAt, high: highAt, shareOfLow: (wanted - highRate) / (lowRate - highRate) };
}
