/**
 * Formats figures, times and names for pages: grouped digits, units, and the reader's time zone where scripts run.
 */
import { countryName } from "#core/country-names";
import { instantWords, msText, percentText, whenWords } from "#core/format";
import { type Html, html, pathWith } from "./html.ts";

export { countryName, percentText };

const grouped = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

export function countText(count: number): string {
  return grouped.format(count);
}

/** Shows one decimal below ten. */
export function rateText(perMinute: number): string {
  return perMinute > 0 && perMinute < 10 ? perMinute.toFixed(1) : countText(perMinute);
}

export function msOrDash(ms: number | null): string {
  return ms === null ? "–" : msText(ms);
}

export function shippedShare({ bodyBytes, shippedBytes }: SizesInAndOut): string {
  return bodyBytes > 0 ? percentText(shippedBytes / bodyBytes) : "–";
}

interface SizesInAndOut {
  readonly bodyBytes: number;
  readonly shippedBytes: number;
}

/** Shows UTC until the script converts it to the reader's zone. */
export function instant(at: Date | string): Html {
  const iso = isoOf(at);
  return html`<time datetime="${iso}">${instantWords(iso)}</time>`;
}

const isoOf = (at: Date | string) => (typeof at === "string" ? at : at.toISOString());

/** Wraps instants in the text (as `instantWords` writes them), so that scripts can localise them. */
export function sentence(words: string): Html {
  const parts = words.split(/(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)/);
  return html`${parts.map((part, at) => (at % 2 === 0 ? part : instant(part.replace(/^(\S+) (\S+) UTC$/, "$1T$2Z"))))}`;
}

/** Shows an instant as "5 min ago", with the exact instant as a tooltip. */
export function ago(at: Date | string, now: string): Html {
  const iso = isoOf(at);
  return html`<time class="ago" datetime="${iso}" title="${instantWords(iso)}">${whenWords(iso, new Date(now))}</time>`;
}

/** Links to the look-up of this range, host or URL. */
export function askAbout(text: string, shown: string = text): Html {
  return html`<a class="mono" href="${pathWith("/who", { q: text })}">${shown}</a>`;
}

export function crawlerLink(name: string): Html {
  return html`<a href="/crawlers/${encodeURIComponent(name)}">${name}</a>`;
}

/** Shows the state as a dot and a word, never by colour alone. */
export function stateBadge(state: string, name = state): Html {
  return html`<span class="state state-${state}">${name}</span>`;
}

/** A country code with the name as a tooltip. */
export function country(code: string | null): Html | null {
  if (code === null || !/^[A-Z]{2}$/.test(code)) return null;
  return html`<abbr title="${countryName(code)}">${code}</abbr>`;
}

// Crawler colours are the same everywhere: first twelve hues that people with common colour deficiencies can distinguish
// (based on the sets of P. Tol and of Okabe and Ito), with enough contrast to near black and to white, then darker variants.
// Colours repeat in larger fleets, so names are always shown, too.

const hues = [
  "#0072b2",
  "#e68100",
  "#00946c",
  "#cc5aa0",
  "#4aa4de",
  "#be4628",
  "#806edc",
  "#9e8c14",
  "#1ea0aa",
  "#965a3c",
  "#6e9632",
  "#c83c5a",
];

/** The colour depends only on the id, so that changes of the fleet never recolour other crawlers. */
export function crawlerColour(crawlerId: number): string {
  const index = crawlerId - 1;
  const hue = hues[index % hues.length] as string;
  return Math.floor(index / hues.length) % 2 === 0 ? hue : darker(hue);
}

const darker = (hue: string): string =>
  hue.replace(/[\da-f]{2}/g, (part) =>
    Math.round(0.62 * Number.parseInt(part, 16))
      .toString(16)
      .padStart(2, "0"),
  );

export const nobodysColour = "#869694";

/** The colour for several crawlers combined. */
export const othersColour = "#5c6870";
