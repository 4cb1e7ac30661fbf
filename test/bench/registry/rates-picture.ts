/** The registry's rates as it grows, in a picture. */
import { axisFor } from "#ops/evaluate/pictures/document";
import { drawLines } from "#ops/evaluate/pictures/line-picture";
import type { Spread } from "./measured-rounds.ts";

export interface SizeRates {
  readonly millionUrls: number;
  /** A second, on two free cores. */
  readonly admitted: Spread;
  readonly leased: Spread;
}

/** Medians, with the rate that was asked for as a dashed line. */
export function ratesPicture(sizes: readonly SizeRates[]): string {
  const most = Math.max(...sizes.map(({ millionUrls }) => millionUrls));
  const panel = (title: string, of: "admitted" | "leased", wanted: number) => ({
    title,
    x: axisFor("million URLs", [], { to: most }),
    y: axisFor("a second", [...sizes.map((size) => size[of].median), wanted]),
    lines: [
      {
        name: "measured, on two free cores",
        role: "nearest" as const,
        style: "line-with-marks" as const,
        points: sizes.map((size) => ({ x: size.millionUrls, y: size[of].median })),
      },
      {
        name: "asked for",
        role: "random" as const,
        style: "dashed" as const,
        points: [
          { x: 0, y: wanted },
          { x: most, y: wanted },
        ],
      },
    ],
  });
  return drawLines({
    title: "The registry of URLs as it grows",
    description: "URLs admitted and host slices leased a second by the number of URLs in the registry.",
    panels: [
      panel("URLs admitted", "admitted", 20_000),
      panel("host slices of 20 URLs leased", "leased", 2_000),
    ],
  });
}
