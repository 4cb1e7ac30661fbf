/** A small line of how something went, with its last value marked. */
import { type Html, html, nothing } from "./html.ts";

const width = 160;
const height = 36;

export function sparkline(values: readonly number[], label: string): Html {
  if (values.length < 2) return nothing;
  const most = Math.max(...values, 1);
  const points = values.map((value, index) => ({
    x: round((index / (values.length - 1)) * (width - 4) + 2),
    y: round(height - 3 - (value / most) * (height - 6)),
  }));
  const line = points.map((point, index) => `${index === 0 ? "M" : "L"}${point.x} ${point.y}`).join("");
  const last = points.at(-1) ?? { x: 0, y: 0 };
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="spark-area" d="${line}L${last.x} ${height}L2 ${height}Z"/><path class="spark-line" d="${line}"/></svg>`;
}

const round = (value: number) => Math.round(value * 10) / 10;
