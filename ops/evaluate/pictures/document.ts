/**
 * The frame of every picture: an SVG document with its title, legend and the colours for light and dark readers.
 * A page shows it by `<img>`; the colours follow what the reader's system prefers.
 */

/** What a line or bar stands for; a role has one colour in all pictures. */
export type Role =
  | "random"
  | "ipmicra"
  | "ipmicra-strict"
  | "nearest"
  | "get-first"
  | "exhaustive"
  | "worst"
  | "paper"
  | "part-1"
  | "part-2"
  | "part-3";

/** Told apart by people who see few colours (after Okabe and Ito); the second is for dark pages. */
const colours: Readonly<Record<Role, readonly [light: string, dark: string]>> = {
  random: ["#7a7a7a", "#a8a8a8"],
  ipmicra: ["#c25400", "#f28e2b"],
  "ipmicra-strict": ["#a8327d", "#e58ac4"],
  nearest: ["#0062a8", "#56b4e9"],
  "get-first": ["#00806a", "#2ec4a5"],
  exhaustive: ["#3d3d3d", "#e0e0e0"],
  worst: ["#a3a3a3", "#7d7d7d"],
  paper: ["#b00020", "#ff7b8a"],
  "part-1": ["#0062a8", "#56b4e9"],
  "part-2": ["#c25400", "#f28e2b"],
  "part-3": ["#9a9a9a", "#8a8a8a"],
};

export interface PictureFrame {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  /** One sentence for those who cannot see it. */
  readonly description: string;
}

export function svgDocument({ width, height, title, description }: PictureFrame, body: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title description">
<title id="title">${escapeXml(title)}</title>
<desc id="description">${escapeXml(description)}</desc>
<style>
${styles()}
</style>
<rect class="page" width="${width}" height="${height}"/>
<text class="title" x="16" y="28">${escapeXml(title)}</text>
${body}
</svg>
`;
}

function styles(): string {
  const roles = (which: 0 | 1) =>
    Object.entries(colours).map(([role, pair]) => `.${role}{color:${pair[which]}}`);
  return [
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:#333}",
    ".title{font-size:16px;font-weight:600;fill:#111}",
    ".panel-title{font-weight:600}",
    ".page{fill:#fff}.grid{stroke:#e4e4e4}.axis{stroke:#888}.halo{stroke:#fff}",
    ".line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}",
    ".mark{fill:currentColor}.hollow{fill:#fff;stroke:currentColor;stroke-width:2}.bar{fill:currentColor}",
    ".halo{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}",
    ...roles(0),
    "@media (prefers-color-scheme: dark){",
    "text{fill:#c9c9c9}.title{fill:#f0f0f0}",
    ".page{fill:#16181c}.grid{stroke:#2d3036}.axis{stroke:#777}.halo{stroke:#16181c}.hollow{fill:#16181c}",
    ...roles(1),
    "}",
  ].join("\n");
}

export interface LegendEntry {
  readonly name: string;
  readonly role: Role;
  readonly kind: "line" | "dashed" | "mark" | "hollow" | "bar";
}

/** Beneath the title, in as many rows as the width asks for. */
export function legend(entries: readonly LegendEntry[], width: number): { svg: string; height: number } {
  let x = 16;
  let y = 50;
  const parts = entries.map((entry) => {
    const entryWidth = 34 + 6.8 * entry.name.length + 16;
    if (x > 16 && x + entryWidth > width - 16) {
      x = 16;
      y += 20;
    }
    const part = `<g class="${entry.role}">${swatch(entry.kind, x, y - 4)}<text x="${x + 34}" y="${y}">${escapeXml(entry.name)}</text></g>`;
    x += entryWidth;
    return part;
  });
  return { svg: parts.join("\n"), height: entries.length === 0 ? 40 : y + 10 };
}

function swatch(kind: LegendEntry["kind"], x: number, y: number): string {
  switch (kind) {
    case "bar":
      return `<rect class="bar" x="${x + 6}" y="${y - 6}" width="14" height="12"/>`;
    case "mark":
      return `<circle class="mark" cx="${x + 13}" cy="${y}" r="4.5"/>`;
    case "hollow":
      return `<circle class="hollow" cx="${x + 13}" cy="${y}" r="4.5"/>`;
    default:
      return `<path class="line" d="M${x} ${y}h26"${kind === "dashed" ? ' stroke-dasharray="5 4"' : ""}/>`;
  }
}

export function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** A coordinate with one digit: pictures stay small, and the same on every machine. */
export const at = (value: number): string => String(Math.round(value * 10) / 10);

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
