/** A picture of one or more panels side by side with bars that are stacked of parts. */
import { at, axisFor, escapeXml, legend, type Role, svgDocument } from "./document.ts";
import { drawAxes, type PanelBox } from "./line-picture.ts";

export interface BarPicture {
  readonly title: string;
  readonly description: string;
  /** With its unit. */
  readonly valueLabel: string;
  readonly parts: readonly { readonly name: string; readonly role: Role }[];
  readonly panels: readonly BarPanel[];
}

export interface BarPanel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

export interface Bar {
  readonly name: string;
  /** One value per part, bottom first. */
  readonly values: readonly number[];
}

const panelHeight = 260;
const barWidth = 52;
const barGap = 22;
const gutter = 78;

export function drawBars(picture: BarPicture): string {
  const { title, description, panels } = picture;
  const widths = panels.map(({ bars }) => bars.length * (barWidth + barGap) + barGap);
  const width = gutter + widths.reduce((sum, value) => sum + value + gutter, 0) - gutter + 20;
  const names = legend(
    picture.parts.map((part) => ({ ...part, kind: "bar" })),
    width,
  );
  const top = names.height + 34;
  let left = gutter - 10;
  const drawn = panels.map((panel, index) => {
    const box = { left, top, width: widths[index]!, height: panelHeight };
    left += widths[index]! + gutter;
    return drawPanel(panel, box, picture);
  });
  const height = top + panelHeight + 48;
  return svgDocument({ width, height, title, description }, [names.svg, ...drawn].join("\n"));
}

function drawPanel(panel: BarPanel, box: PanelBox, picture: BarPicture): string {
  const sums = picture.panels.flatMap(({ bars }) => bars.map((bar) => sum(bar.values)));
  const y = axisFor(picture.valueLabel, sums);
  const axes = drawAxes(box, { title: panel.title, x: null, y });
  const bars = panel.bars.map((bar, index) => {
    const left = box.left + barGap + index * (barWidth + barGap);
    return drawBar(bar, { left, y: axes.y, bottom: box.top + box.height, parts: picture.parts });
  });
  return [axes.svg, ...bars].join("\n");
}

function drawBar(
  bar: Bar,
  of: {
    readonly left: number;
    readonly bottom: number;
    readonly y: (value: number) => number;
    readonly parts: BarPicture["parts"];
  },
): string {
  let below = 0;
  const middle = at(of.left + barWidth / 2);
  const parts = bar.values.map((value, index) => {
    const [low, high] = [of.y(below), of.y(below + value)];
    below += value;
    return `<g class="${of.parts[index]?.role ?? "part-3"}"><rect class="bar" x="${at(of.left)}" y="${at(high)}" width="${barWidth}" height="${at(low - high)}"/></g>`;
  });
  // Two lines at most: `ipmicra`, and below it `50 ms`.
  const [first = "", ...rest] = bar.name.split(" ");
  const name = [first, rest.join(" ")].map(
    (word, index) =>
      `<text x="${middle}" y="${at(of.bottom + 17 + 14 * index)}" text-anchor="middle">${escapeXml(word)}</text>`,
  );
  const value = `<text class="halo" x="${middle}" y="${at(of.y(below) - 6)}" text-anchor="middle">${Math.round(below)}</text>`;
  return [...parts, value, ...name].join("\n");
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
