/**
 * Runs the same policies over several seeds, for mean and spread: other worlds where the world is generated, other orders of the
 * same targets where it was measured.
 */
import {
  type Figures,
  type PolicyVariant,
  type ProbeModel,
  type SimulationResult,
  simulatePolicies,
} from "#coordinator/place/delegation/simulation/simulation";
import { mix32, seededRandom } from "#core/random";
import { triesAgree } from "#crawler/probe/http-head";
import type { InstanceSource, Tuning } from "./instances.ts";

interface RepeatSettings {
  readonly source: InstanceSource;
  readonly variants: readonly PolicyVariant[];
  readonly seeds: readonly number[];
  readonly noise: ProbeNoise;
  /** Called with the targets done, over all seeds. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** The results of one policy's runs. */
export interface RepeatedResult {
  readonly variant: PolicyVariant;
  readonly tuning: Tuning;
  /** One per seed, in their order. */
  readonly results: readonly SimulationResult[];
  readonly figures: Readonly<Record<keyof Figures, Spread>>;
}

/** One result per variant, in their order. */
export function repeatPolicies(settings: RepeatSettings): RepeatedResult[] {
  const { source, variants, seeds, noise } = settings;
  const perSeed = seeds.map((seed, index) =>
    simulatePolicies(source.instance(seed), variants, {
      seed,
      observe: noisyProbes(noise, seed),
      onProgress: (done, targets) => settings.onProgress?.(index * targets + done, seeds.length * targets),
    }),
  );
  return variants.map((variant, index) => {
    const results = perSeed.map((ofSeed) => ofSeed[index]!);
    return { variant, tuning: source.tuning, results, figures: spreadsOf(results) };
  });
}

const figureNames = [
  ...(["optimalPct", "within2msPct", "within5msPct", "meanExcessMs", "p95ExcessMs"] as const),
  ...(["probesPerUrl", "p95ProbesPerUrl", "probesPerUrlLast50"] as const),
];

const spreadsOf = (results: readonly Figures[]) =>
  Object.fromEntries(
    figureNames.map((name) => [name, spreadOf(results.map((result) => result[name]))]),
  ) as Record<keyof Figures, Spread>;

/** `count` consecutive seeds from `first`; after the largest follows 0. */
export function seedsFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => (first + index) % 2 ** 32);
}

// What a crawler measures in a simulated run: the undisturbed RTT, a delay that differs from try to try, now and
// then a spike, now and then nothing. A probe is the smallest of its tries, which end as those of the live
// crawler do: when two of them agree, or at the most that are allowed.
//
// A disturbance hangs on the seed, the target, the crawler and the way it asks, not on the order of the asking:
// every policy meets the same weather, so that the exhaustive one under the same noise is a fair yardstick.

export interface ProbeNoise {
  /** Mean of the exponential delay of every try, in ms. */
  readonly noiseMs: number;
  /** Share of tries with a further exponential delay of mean `spikeMs`. */
  readonly spikeShare: number;
  readonly spikeMs: number;
  /** Share of lost tries; a probe without any answer failed. */
  readonly lossShare: number;
  /** Most tries of a probe. The crawl's own GET is always one try. */
  readonly tries: number;
}

/** The coordinator's default number of tries. */
export const noNoise: ProbeNoise = { noiseMs: 0, spikeShare: 0, spikeMs: 50, lossShare: 0, tries: 6 };

function isQuiet({ noiseMs, spikeShare, lossShare }: ProbeNoise): boolean {
  return noiseMs === 0 && spikeShare === 0 && lossShare === 0;
}

export function noisyProbes(noise: ProbeNoise, seed: number): ProbeModel {
  if (isQuiet(noise)) return ({ rttMs }) => ({ rttMs });
  return ({ target, crawler, rttMs, how }) => {
    const pair = mix32(mix32(seed ^ 0x6e6f6973) ^ Math.imul(target + 1, 0x9e3779b1));
    const draw = seededRandom(mix32(pair ^ Math.imul(crawler + 1, 0x85ebca6b)) ^ (how === "get" ? 1 : 0));
    const triesMs: number[] = [];
    const most = how === "get" ? 1 : noise.tries;
    for (let tried = 0; tried < most && !triesAgree(triesMs); tried++) {
      const delayMs = drawDelayMs(noise, draw);
      if (delayMs !== null) triesMs.push(rttMs + delayMs);
    }
    return triesMs.length > 0 ? { rttMs: Math.min(...triesMs) } : { failed: "lost" };
  };
}

/** Of one try; null: lost. Always four draws, so that changing one parameter leaves the other draws the same. */
function drawDelayMs(noise: ProbeNoise, draw: () => number): number | null {
  const [lost, spike, delay, height] = [draw(), draw(), draw(), draw()] as const;
  if (lost < noise.lossShare) return null;
  const spikeMs = spike < noise.spikeShare ? exponential(noise.spikeMs, height) : 0;
  return exponential(noise.noiseMs, delay) + spikeMs;
}

const exponential = (mean: number, uniform: number) => -mean * Math.log(1 - uniform);

/** Values of one figure from runs with other seeds, formatted. */
export interface Spread {
  readonly mean: number;
  readonly least: number;
  readonly most: number;
}

/** Rounded to four decimals. Zeros for no values. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return { mean: 0, least: 0, most: 0 };
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { mean: rounded(mean), least: Math.min(...values), most: Math.max(...values) };
}

/** `96.1` for one value, `96.1 (95.2 to 97.0)` for several that differ. */
export function spreadText({ mean, least, most }: Spread, digits: number): string {
  const text = mean.toFixed(digits);
  const [low, high] = [least.toFixed(digits), most.toFixed(digits)];
  return low === high ? text : `${text} (${low} to ${high})`;
}

function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
