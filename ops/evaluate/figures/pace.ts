/** What got through to limited sites over the time, a panel per kind of limiter, a line per controller of the pace. */
import { type LimiterKind, limiterKinds, limiterWords } from "../../simulate/pace/limiters.ts";
import type { Controller } from "../../simulate/pace/simulate-pace.ts";
import { axisFor, type Role } from "../pictures/document.ts";
import { drawLines, type LinePanel } from "../pictures/line-picture.ts";

export interface PaceLine {
  readonly kind: LimiterKind;
  readonly controller: Controller;
  /** By the tenth of an hour. */
  readonly perHour: readonly number[];
}

const roles: Readonly<Record<Controller, Role>> = { earlier: "ipmicra", tolerated: "nearest" };
/** Tenths of an hour that make one point. */
const tenthsPerPoint = 5;

export function drawPace(all: readonly PaceLine[]): string {
  const kinds = limiterKinds.filter((kind) => all.some((line) => line.kind === kind));
  return drawLines({
    title: "Requests that got through to limited sites",
    description:
      "Requests per minute that got through over the time, a panel per kind of limiter, with the pace of before and the tolerated one.",
    panels: kinds.map((kind) =>
      panelOf(
        kind,
        all.filter((line) => line.kind === kind),
      ),
    ),
  });
}

function panelOf(kind: LimiterKind, lines: readonly PaceLine[]): LinePanel {
  const drawn = lines.map(({ controller, perHour }) => ({
    name: controller,
    role: roles[controller],
    points: pointsOf(perHour),
    style: "line" as const,
  }));
  const points = drawn.flatMap((line) => line.points);
  const axis = (label: string, of: (point: { x: number; y: number }) => number) =>
    axisFor(label, points.map(of));
  return {
    title: limiterWords[kind],
    x: axis("hours", ({ x }) => x),
    y: axis("per minute", ({ y }) => y),
    lines: drawn,
  };
}

function pointsOf(perHour: readonly number[]): { x: number; y: number }[] {
  const points: { x: number; y: number }[] = [];
  for (let from = 0; from < perHour.length; from += tenthsPerPoint) {
    const part = perHour.slice(from, from + tenthsPerPoint);
    const mean = part.reduce((sum, value) => sum + value, 0) / part.length;
    points.push({ x: (from + part.length) / 10, y: mean / 60 });
  }
  return points;
}
