/**
 * What a crawler measures in a simulated run: the undisturbed RTT, a delay that differs from try to try, now and
 * then a spike, now and then nothing. A probe is the smallest of its tries, which end as those of the live
 * crawler do: when two of them agree, or at the most that are allowed.
 *
 * A disturbance hangs on the seed, the target, the crawler and the way it asks, not on the order of the asking:
 * every policy meets the same weather, so that the exhaustive one under the same noise is a fair yardstick.
 */
import type { ProbeModel } from "#coordinator/delegation/simulation/run";
import { mix32, seededRandom } from "#core/random";
import { triesAgree } from "#crawler/probe/http-head";

export interface ProbeNoise {
  /** Mean of an exponential delay on every try, in ms. */
  readonly noiseMs: number;
  /** Share of tries that are delayed by a further exponential with the mean `spikeMs`. */
  readonly spikeShare: number;
  readonly spikeMs: number;
  /** Share of tries without an answer; a probe whose tries are all lost failed. */
  readonly lossShare: number;
  /** Most tries of a probe. The crawl's own GET is always one. */
  readonly tries: number;
}

/** Tries as the coordinator asks for by default. */
export const noNoise: ProbeNoise = { noiseMs: 0, spikeShare: 0, spikeMs: 50, lossShare: 0, tries: 6 };

export function isQuiet({ noiseMs, spikeShare, lossShare }: ProbeNoise): boolean {
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

/** Of one try; null: lost. Always four draws, so that a knob that is turned leaves the other draws alone. */
function drawDelayMs(noise: ProbeNoise, draw: () => number): number | null {
  const [lost, spike, delay, height] = [draw(), draw(), draw(), draw()] as const;
  if (lost < noise.lossShare) return null;
  const spikeMs = spike < noise.spikeShare ? exponential(noise.spikeMs, height) : 0;
  return exponential(noise.noiseMs, delay) + spikeMs;
}

const exponential = (mean: number, uniform: number) => -mean * Math.log(1 - uniform);
