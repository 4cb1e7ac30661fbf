/** What pages share: headings, figures, forms of one button, lists in pages. */
import { type Actor, mayDo, type Scope } from "#core/actor";
import { askAbout, countText, instant } from "./format.ts";
import { type Html, html, nothing, pathWith } from "./html.ts";
import { formToken, type PageViewer } from "./page-frame.ts";

/** The heading of a page, with what stands beside it; its tabs are the frame's (navigation.ts). */
export function titleRow(title: string, more: Html = nothing): Html {
  return html`<div class="title-row"><h1>${title}</h1>${more}</div>`;
}

/** As `titleRow`. */
export function fleetHead(_path: string, _viewer: PageViewer, title: string, more: Html = nothing): Html {
  return titleRow(title, more);
}

export function tile(name: string, figure: string | Html, more: Html | string = nothing): Html {
  return html`<div class="tile"><dt>${name}</dt><dd><span class="figure">${figure}</span>${
    more === nothing ? nothing : html`<span class="small">${more}</span>`
  }</dd></div>`;
}

export function fact(name: string, value: Html | string | number): Html {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

export function dateOr(date: Date | null, otherwise: string): Html {
  return date === null ? html`${otherwise}` : instant(date.toISOString());
}

/** A form of one button, for somebody who may. */
export function buttonForm(
  viewer: PageViewer,
  to: { readonly path: string; readonly label: string; readonly kind?: "quiet" | "danger" | "plain" },
  fields: Html = nothing,
): Html {
  const kind = to.kind === "plain" ? "slim" : `slim ${to.kind ?? "quiet"}`;
  return html`<form method="post" action="${to.path}">${formToken(viewer)}${fields}<button class="${kind}">${to.label}</button></form>`;
}

/** For what takes work away: it is done once `typed` is typed. */
export function confirmForm(
  viewer: PageViewer,
  to: { readonly path: string; readonly label: string; readonly typed: string; readonly id: string },
): Html {
  return html`<form class="confirm" method="post" action="${to.path}">${formToken(viewer)}<label for="${to.id}">Type <code>${to.typed}</code> to confirm</label><input id="${to.id}" name="confirmation" required maxlength="100" autocomplete="off" autocapitalize="none" spellcheck="false"> <button class="slim danger">${to.label}</button></form>`;
}

export function options(values: readonly (readonly [value: string, name: string])[], chosen: string): Html {
  return html`${values.map(
    ([value, name]) =>
      html`<option value="${value}"${value === chosen ? html` selected` : nothing}>${name}</option>`,
  )}`;
}

export interface Paged {
  readonly path: string;
  readonly query: Readonly<Record<string, string | number | null>>;
  readonly page: number;
  readonly more: boolean;
}

export function pager({ path, query, page, more }: Paged): Html {
  if (page === 1 && !more) return nothing;
  const to = (number: number) => pathWith(path, { ...query, page: number === 1 ? null : number });
  return html`<nav class="pager" aria-label="Pages of the list">${
    page > 1 ? html`<a href="${to(page - 1)}" rel="prev">← Page ${countText(page - 1)}</a>` : nothing
  }<span>Page ${countText(page)}</span>${more ? html`<a href="${to(page + 1)}" rel="next">Page ${countText(page + 1)} →</a>` : nothing}</nav>`;
}

export function crawlerPath(name: string, deed = ""): string {
  return `/crawlers/${encodeURIComponent(name)}${deed}`;
}

/** To the page of a crawler, where there is one. */
export function crawlerOr(name: string | null, otherwise: string): Html {
  return name === null ? html`${otherwise}` : html`<a href="${crawlerPath(name)}">${name}</a>`;
}

/** A crawler's name, with a link for whoever may open its page. */
export function crawlerFor({ actor }: PageViewer, name: string): Html {
  const isOpen = !name.includes(" ") && mayDo(actor, "read", { crawler: name, partnersToo: true });
  return isOpen ? crawlerOr(name, "") : html`${name}`;
}

/** A subnet or URL, with a link to who crawls it for whoever may ask. */
export function askFor({ actor }: PageViewer, text: string): Html {
  return mayDo(actor, "read") ? askAbout(text) : html`<span class="mono break">${text}</span>`;
}

export function empty(what: string, then: Html | string): Html {
  return html`<div class="empty"><p><strong>${what}</strong> ${then}</p></div>`;
}

/** Why somebody sees no buttons. */
export function onlyOperators(actor: Actor, scope: Scope, what: string): Html {
  if (mayDo(actor, scope)) return nothing;
  return html`<p class="small">${what}: that is for operators${actor.role === "anybody" ? html`, once they have <a href="/sign-in">signed in</a>` : nothing}.</p>`;
}

// A small chart of how something went: one line, an axis with its unit, gaps where nothing is known. What it shows is
// also said in words beside it, for those who do not see it.

interface LineChart {
  readonly title: string;
  /** Oldest first, evenly spaced; null: not known. */
  readonly values: readonly (number | null)[];
  /** A value with its unit. */
  readonly text: (value: number) => string;
  /** What stands below the left end, the middle and the right end. */
  readonly times: readonly [string, string, string];
  /** Over which span, in words: "the last hour". */
  readonly span: string;
}

const width = 360;
const height = 132;
const plot = { left: 50, right: width - 4, top: 8, bottom: height - 20 };

export function lineChart(chart: LineChart): Html {
  const known = chart.values.filter((value) => value !== null);
  const most = niceMost(Math.max(0, ...known));
  const words = wordsOf(chart, known);
  return html`<figure class="chart"><figcaption><strong>${chart.title}</strong> <span class="small">${words}</span></figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${`${chart.title} over ${chart.span}: ${words}`}">
<path class="chart-grid" d="M${plot.left} ${plot.top}H${plot.right}M${plot.left} ${middle}H${plot.right}M${plot.left} ${plot.bottom}H${plot.right}"/>
${known.length === 0 ? nothing : html`<path class="chart-area" d="${areaPath(chart.values, most)}"/><path class="chart-line" d="${linePath(chart.values, most)}"/><path class="chart-alone" d="${alonePath(chart.values, most)}"/>`}
<g class="chart-text">${axisText(plot.top, chart.text(most))}${axisText(middle, chart.text(most / 2))}${axisText(plot.bottom, "0")}
${timeTexts(chart.times)}</g></svg></figure>`;
}

const middle = (plot.top + plot.bottom) / 2;

function timeTexts([left, centre, right]: LineChart["times"]): Html {
  const y = height - 6;
  return html`<text x="${plot.left}" y="${y}">${left}</text><text x="${(plot.left + plot.right) / 2}" y="${y}" text-anchor="middle">${centre}</text><text x="${plot.right}" y="${y}" text-anchor="end">${right}</text>`;
}

function axisText(y: number, text: string): Html {
  return html`<text x="${plot.left - 6}" y="${round(y + 3.5)}" text-anchor="end">${text}</text>`;
}

function wordsOf({ values, text }: LineChart, known: readonly number[]): string {
  if (known.length === 0) return "no data yet";
  const last = values.findLast((value) => value !== null) ?? 0;
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  return `now ${text(last)}, mean ${text(mean)}, highest ${text(Math.max(...known))}`;
}

/** The next of 1, 2, 5, 10, 20 …, so that the axis has round figures. */
function niceMost(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 2, 5, 10].find((one) => one * power >= most) ?? 10;
  return step * power;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Runs of known values. */
function runsOf(values: readonly (number | null)[], most: number): Point[][] {
  const step = values.length > 1 ? (plot.right - plot.left) / (values.length - 1) : 0;
  const runs: Point[][] = [[]];
  for (const [index, value] of values.entries()) {
    if (value === null) runs.push([]);
    else {
      const y = plot.bottom - (value / most) * (plot.bottom - plot.top);
      runs.at(-1)!.push({ x: round(plot.left + index * step), y: round(y) });
    }
  }
  return runs.filter((run) => run.length > 0);
}

function linePath(values: readonly (number | null)[], most: number): string {
  return runsOf(values, most)
    .filter((run) => run.length > 1)
    .map((run) => `M${run.map(({ x, y }) => `${x} ${y}`).join("L")}`)
    .join("");
}

/** Values alone between gaps are dots (the round caps of strokes without length). */
function alonePath(values: readonly (number | null)[], most: number): string {
  return runsOf(values, most)
    .filter((run) => run.length === 1)
    .map(([point]) => `M${point!.x} ${point!.y}h0`)
    .join("");
}

function areaPath(values: readonly (number | null)[], most: number): string {
  return runsOf(values, most)
    .filter((run) => run.length > 1)
    .map((run) => {
      const points = run.map(({ x, y }) => `${x} ${y}`).join("L");
      return `M${run[0]!.x} ${plot.bottom}L${points}V${plot.bottom}Z`;
    })
    .join("");
}

const round = (value: number) => Math.round(value * 10) / 10;
