/** What a simulated run amounts to: how near the choices came to the best, and what they cost. */
export interface Figures {
  /** Share of the targets whose crawler is a fastest one (ties count), in per cent. */
  readonly optimalPct: number;
  /** Share whose crawler is at most 5 ms slower than the fastest. */
  readonly within5msPct: number;
  /** Mean and 95th percentile (nearest rank) of what the choice is slower than the best. */
  readonly meanExcessMs: number;
  readonly p95ExcessMs: number;
  /** Paid probes: the first observation is free with get-first. */
  readonly probesPerUrl: number;
  /** The same over the last 50 targets of the run, when most was learned. */
  readonly probesPerUrlLast50: number;
}

/** A target in the order of the run. */
export interface SimulatedRound {
  readonly probes: number;
  readonly rttMs: number;
  readonly bestRttMs: number;
}

/** The figures of a run, rounded to four decimals; all zero for none. */
export function figuresOf(rounds: readonly SimulatedRound[]): Figures {
  const excessMs = rounds.map((round) => round.rttMs - round.bestRttMs);
  const probes = rounds.map((round) => round.probes);
  return {
    optimalPct: percentOf(excessMs, (ms) => ms === 0),
    within5msPct: percentOf(excessMs, (ms) => ms <= 5 + floatSlackMs),
    meanExcessMs: rounded(mean(excessMs)),
    p95ExcessMs: rounded(percentile(excessMs, 0.95)),
    probesPerUrl: rounded(mean(probes)),
    probesPerUrlLast50: rounded(mean(probes.slice(-50))),
  };
}

/** 20.1 − 15.1 is a little more than 5 in floating point. */
const floatSlackMs = 1e-9;

function percentOf(values: readonly number[], holds: (value: number) => boolean): number {
  return rounded((100 * values.filter(holds).length) / Math.max(1, values.length));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
