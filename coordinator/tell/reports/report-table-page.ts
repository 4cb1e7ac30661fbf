/** Parts of all reports' tables: figures with too few samples, bars, and the words for pages and waiting times. */
import { countryName } from "#core/country-names";
import { tooFewWords } from "#core/format";
import { column, member, picture } from "../../ask/document.ts";
import type { Column, Unit } from "../../ask/operation.ts";
import { countText } from "../../web/format.ts";
import { type Html, html, pathWith } from "../../web/html.ts";

/** Shows a replacement for a figure that has too few samples. */
export const figure = <Line>(
  name: keyof Line & string,
  title: string,
  unit: Unit = "count",
  more: Partial<Column<Line>> = {},
) => member<Line>(name, title, { unit, none: tooFewWords, kind: "number", ...more });

/** Shows a decimal if there are few pages a day. */
export const pagesText = (pages: number) => (pages > 0 && pages < 10 ? pages.toFixed(1) : countText(pages));

export const shareText = (share: number) =>
  share > 0 && share < 0.001 ? "under 0.1 %" : `${(100 * share).toFixed(1)} %`;

/** Formats the total round-trip time of a day's pages: "44 ms", "1.2 h". */
export function waitedText(msPages: number): string {
  const seconds = msPages / 1000;
  if (seconds < 1) return `${Math.round(msPages)} ms`;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(seconds < 36_000 ? 1 : 0)} h`;
}

export const who = (question: string) => pathWith("/who", { q: question });
export const crawlerPage = (name: string | null) =>
  name === null ? null : `/crawlers/${encodeURIComponent(name)}`;

// Bars that consist of adjacent parts, starting at the left.

interface BarPart {
  /** The width from 0 to 100. */
  readonly width: number;
  readonly kind: "value" | "saved" | "predicted" | "unknown";
}

export const barColumn = <Line>(parts: (line: Line) => readonly BarPart[], label: (line: Line) => string) =>
  column<Line>("", "(Picture)", (line) => bar(parts(line), label(line)), {
    ...{ kind: "bar-column", isPicture: true },
  });

function bar(parts: readonly BarPart[], label: string): Html {
  let x = 0;
  const drawn = parts.map(({ width, kind }) => {
    const shown = Math.max(0, Math.min(100 - x, width));
    const part = html`<rect class="bar-${kind}" x="${round(x)}" width="${round(shown)}" height="8"/>`;
    x += shown;
    return part;
  });
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="${label}"><rect class="bar-ground" width="100"
height="8"/>${drawn}</svg>`;
}

const round = (value: number) => Math.round(10 * value) / 10;
export const most = (values: readonly number[]) => Math.max(1e-9, ...values);

export const pagesBar = <Line extends { readonly pages: number }>(lines: readonly Line[]) => {
  const mostPages = most(lines.map(({ pages }) => pages));
  return barColumn<Line>(
    ({ pages }) => [{ width: (100 * pages) / mostPages, kind: "value" }],
    ({ pages }) => `${countText(pages)} pages`,
  );
};

export const legend = (...entries: readonly (readonly [kind: BarPart["kind"], words: string])[]) =>
  picture(
    html`<p class="bar-legend small">${entries.map(([kind, words]) => html`<span class="bar-key bar-key-${kind}">${words}</span> `)}</p>`,
  );

export const countryText = (code: string | null): string =>
  code === null || code === "" ? "not known" : countryName(code);
