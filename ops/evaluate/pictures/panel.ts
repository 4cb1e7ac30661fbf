/** A panel: a frame with two axes, light lines at their marks, and labels with units. */
import { type Axis, placeOn } from "./axis.ts";
import { at, escapeXml } from "./document.ts";

export interface PanelBox {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export interface Placed {
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
