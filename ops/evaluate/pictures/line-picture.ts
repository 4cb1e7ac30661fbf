/** A picture of one or more panels side by side with lines and marks over two axes. */
import {
  type Axis,
  at,
  escapeXml,
  type LegendEntry,
  legend,
  placeOn,
  type Role,
  svgDocument,
} from "./document.ts";

export interface LinePanel {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly lines: readonly Line[];
}

export interface Line {
  readonly name: string;
  readonly role: Role;
  readonly points: readonly Point[];
  /** `marks`: no line; `hollow`: marks that stand for somebody else's numbers. */
  readonly style: "line" | "dashed" | "line-with-marks" | "marks" | "hollow";
  /** False: not in the legend (a second line of the same name). */
  readonly named?: boolean;
}

export interface Point {
  readonly x: number;
  readonly y: number;
  readonly label?: string;
}

export interface LinePicture {
  readonly title: string;
  readonly description: string;
  readonly panels: readonly LinePanel[];
}

const panelWidth = 360;
const panelHeight = 260;
const gutter = 84;

/** Panels side by side; further ones stand below. */
const columns = 2;

export function drawLines({ title, description, panels }: LinePicture): string {
  const width = gutter + Math.min(columns, panels.length) * (panelWidth + gutter) - gutter + 28;
  const names = legend(entriesOf(panels), width);
  const rowHeight = panelHeight + 86;
  const drawn = panels.map((panel, index) => {
    const left = gutter - 14 + (index % columns) * (panelWidth + gutter);
    const top = names.height + 30 + Math.floor(index / columns) * rowHeight;
    return drawPanel(panel, { left, top, width: panelWidth, height: panelHeight });
  });
  const height = names.height + Math.ceil(panels.length / columns) * rowHeight;
  return svgDocument({ width, height, title, description }, [names.svg, ...drawn].join("\n"));
}

function drawPanel(panel: LinePanel, box: PanelBox): string {
  const axes = drawAxes(box, panel);
  const lines = panel.lines.map((line) => drawLine(line, axes));
  // Labels last: no line runs over them.
  const labels = panel.lines.flatMap((line) => line.points.map((point) => drawLabel(line, point, axes)));
  return [axes.svg, ...lines, ...labels].join("\n");
}

function drawLine(line: Line, { x, y }: Placed): string {
  const parts: string[] = [];
  if (line.style !== "marks" && line.style !== "hollow") {
    const path = line.points.map((point) => `${at(x(point.x))} ${at(y(point.y))}`).join("L");
    const dash = line.style === "dashed" ? ' stroke-dasharray="5 4"' : "";
    if (path !== "") parts.push(`<path class="line" d="M${path}"${dash}/>`);
  }
  if (line.style === "marks" || line.style === "hollow" || line.style === "line-with-marks") {
    const mark = line.style === "hollow" ? "hollow" : "mark";
    for (const point of line.points) {
      parts.push(`<circle class="${mark}" cx="${at(x(point.x))}" cy="${at(y(point.y))}" r="4"/>`);
    }
  }
  return `<g class="${line.role}">${parts.join("")}</g>`;
}

function drawLabel(line: Line, point: Point, { x, y }: Placed): string {
  if (point.label === undefined) return "";
  return `<text class="halo ${line.role}" x="${at(x(point.x) + 7)}" y="${at(y(point.y) + 15)}">${escapeXml(point.label)}</text>`;
}

function entriesOf(panels: readonly LinePanel[]): LegendEntry[] {
  const entries = new Map<string, LegendEntry>();
  for (const line of panels.flatMap((panel) => panel.lines)) {
    if (line.named === false || entries.has(line.name)) continue;
    const kind = line.style === "marks" ? "mark" : line.style === "line-with-marks" ? "line" : line.style;
    entries.set(line.name, { name: line.name, role: line.role, kind });
  }
  return [...entries.values()];
}

// A panel: a frame with two axes, light lines at their marks, and labels with units.

export interface PanelBox {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

interface Placed {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly svg: string;
}

export function drawAxes(
  box: PanelBox,
  { title, x, y }: { readonly title: string; readonly x: Axis | null; readonly y: Axis },
): Placed {
  const bottom = box.top + box.height;
  const right = box.left + box.width;
  const placeX = x === null ? () => box.left : placeOn(x, box.left, right);
  const placeY = placeOn(y, bottom, box.top);
  const parts = [
    `<text class="panel-title" x="${at(box.left)}" y="${at(box.top - 10)}">${escapeXml(title)}</text>`,
    ...y.ticks.map((tick) => {
      const height = at(placeY(tick));
      return `<path class="grid" d="M${at(box.left)} ${height}H${at(right)}"/><text x="${at(box.left - 7)}" y="${at(placeY(tick) + 4)}" text-anchor="end">${markText(tick)}</text>`;
    }),
    `<path class="axis" d="M${at(box.left)} ${at(bottom)}H${at(right)}"/>`,
    `<text transform="translate(${at(box.left - 44)} ${at(box.top + box.height / 2)}) rotate(-90)" text-anchor="middle">${escapeXml(y.label)}</text>`,
  ];
  if (x !== null) {
    for (const tick of x.ticks) {
      const place = at(placeX(tick));
      parts.push(
        `<path class="axis" d="M${place} ${at(bottom)}v5"/><text x="${place}" y="${at(bottom + 18)}" text-anchor="middle">${markText(tick)}</text>`,
      );
    }
    parts.push(
      `<text x="${at(box.left + box.width / 2)}" y="${at(bottom + 38)}" text-anchor="middle">${escapeXml(x.label)}</text>`,
    );
  }
  return { x: placeX, y: placeY, svg: parts.join("\n") };
}

function markText(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 2 });
}
