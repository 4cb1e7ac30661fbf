/** A history as one line of characters: eight heights, a dot where nothing is known. */

const heights = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;
const unknown = "·";

export function barLine(values: readonly (number | null)[]): string {
  const most = Math.max(...values.map((value) => value ?? 0), Number.MIN_VALUE);
  return values
    .map((value) => {
      if (value === null) return unknown;
      return heights[Math.min(heights.length - 1, Math.floor((value / most) * heights.length))];
    })
    .join("");
}
