/**
 * How near the delegations are: of sampled subnets (delegation/accuracy), the share whose crawler is within a few
 * milliseconds of the nearest. Samples that nobody got an answer for say nothing and are not counted; one where
 * others got an answer and the subnet's crawler did not counts as far off.
 */
import { wilsonInterval } from "#core/format";

/** So close to the best is as good as the best: what the delegation policies are measured by (evaluation). */
export const nearlyBestMs = 5;
/** Older samples say little of the delegations of today: each is decided anew after so long (recalibration.refreshDays). */
export const accuracyDays = 30;

export interface AccuracyCounts {
  /** With an answer by anybody. */
  readonly samples: number;
  /** Of those, with an owner within `nearlyBestMs` of the best. */
  readonly nearlyBest: number;
}

export interface AccuracyEstimate extends AccuracyCounts {
  readonly withinMs: number;
  readonly days: number;
  /** Null: nothing was sampled yet. */
  readonly share: number | null;
  /** Wilson score interval of the share, 95 % confidence. */
  readonly low: number;
  readonly high: number;
}

export function accuracyEstimate({ samples, nearlyBest }: AccuracyCounts): AccuracyEstimate {
  const share = samples === 0 ? null : nearlyBest / samples;
  return {
    samples,
    nearlyBest,
    withinMs: nearlyBestMs,
    days: accuracyDays,
    share,
    ...wilsonInterval(nearlyBest, samples),
  };
}
