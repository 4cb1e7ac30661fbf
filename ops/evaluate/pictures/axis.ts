/** From values to places in a picture, and the round values at which an axis is marked. */
export interface Axis {
  readonly label: string;
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly number[];
  readonly scale?: "linear" | "logarithmic";
}

/** From 0 (or `from`) to a little over the largest value, with about `count` round marks. */
export function axisFor(
  label: string,
  values: readonly number[],
  bounds: { from?: number; to?: number } = {},
): Axis {
  const from = bounds.from ?? 0;
  const most = bounds.to ?? Math.max(from + 1e-9, ...values);
  const step = roundStep((most - from) / 5);
  const to = bounds.to ?? from + step * Math.ceil((most - from) / step - 1e-9);
  const ticks = Array.from(
    { length: Math.floor((to - from) / step + 1e-9) + 1 },
    (_, index) => Math.round((from + index * step) * 1e6) / 1e6,
  );
  return { label, from, to, ticks };
}

/** 1, 2 or 5 times a power of ten, not below `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-6)));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= least - 1e-12) ?? 10);
}

/** Where on a stretch from `start` to `end` a value lies. */
export function placeOn(axis: Axis, start: number, end: number): (value: number) => number {
  const of = axis.scale === "logarithmic" ? Math.log10 : (value: number) => value;
  const [low, high] = [of(axis.from), of(axis.to)];
  return (value) => start + ((of(value) - low) / (high - low)) * (end - start);
}
