/** Every figure that is computed, in the order of the page. */
import type { Figure } from "./figure.ts";
import { downloadTimeFigure } from "./figures/download-time.ts";
import { frontierFigure } from "./figures/frontier.ts";
import { learningFigure } from "./figures/learning.ts";
import { noiseFigure } from "./figures/noise.ts";
import { scaleFigure } from "./figures/scale.ts";
import { thresholdsFigure } from "./figures/thresholds.ts";
import { worldsFigure } from "./figures/worlds.ts";

export const figures: readonly Figure[] = [
  downloadTimeFigure,
  thresholdsFigure,
  learningFigure,
  frontierFigure,
  scaleFigure,
  noiseFigure,
  worldsFigure,
];
