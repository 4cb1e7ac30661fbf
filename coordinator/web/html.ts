/** Helpers for the escaping template (#core/html): paths, CSV, and table labels. */
import { type Html, type HtmlValue, html, safeHref } from "#core/html";

export { type Html, type HtmlValue, html, safeHref };

export const nothing: Html = html``;

/** Returns a local path with an encoded query. */
export function pathWith(
  path: string,
  query: Readonly<Record<string, string | number | null | undefined>>,
): string {
  let text = path;
  let sign = "?";
  for (const name in query) {
    const value = query[name];
    if (value === null || value === undefined || value === "") continue;
    text += `${sign}${encoded(name)}=${encoded(String(value))}`;
    sign = "&";
  }
  return text;
}

/** Form-encodes text, with a fast path for plain words, because a page has about fifty such links. */
function encoded(text: string): string {
  if (/^[\w.*-]*$/.test(text)) return text;
  return /^[\w.* -]*$/.test(text)
    ? text.replaceAll(" ", "+")
    : `${new URLSearchParams([["", text]])}`.slice(1);
}

/** CSV tables (RFC 4180). */

export interface CsvTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number | boolean | null)[])[];
}

/** Lines end in CRLF, and null becomes an empty field. */
export function csvText({ columns, rows }: CsvTable): string {
  return [columns, ...rows].map((row) => `${row.map(csvField).join(",")}\r\n`).join("");
}

/**
 * Prefixes text that a spreadsheet would run as a formula with an apostrophe (OWASP, CSV injection), because names of
 * networks and pages are untrusted.
 */
export function csvField(value: string | number | boolean | null): string {
  if (value === null) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Below 600 px, table rows become cards whose cells show their column's heading (tables.css). One pass over the
// finished page adds these labels, so that no table can be forgotten.

const tags = /<(\/?)(table|thead|tr|th|td)\b([^>]*)>/g;

/** Body cells below a header get `data-label`; everything else is unchanged. */
export function withCellLabels(markup: string): string {
  if (!markup.includes("<thead")) return markup;
  let labelled = "";
  let copied = 0;
  let labels: string[] = [];
  let isInHead = false;
  let column = 0;
  let headCellAt = 0;
  for (const { 0: tag, 1: slash, 2: name, 3: attributes = "", index } of markup.matchAll(tags)) {
    const isEnd = slash === "/";
    if (name === "table") labels = [];
    else if (name === "thead") isInHead = !isEnd;
    else if (name === "tr") column = 0;
    else if (isEnd) {
      if (isInHead && name === "th") labels[column++] = textOf(markup.slice(headCellAt, index));
    } else if (isInHead) headCellAt = index + tag.length;
    else {
      const label = labels[column] ?? "";
      column += spanOf(attributes);
      if (name !== "td" || label === "") continue;
      labelled += `${markup.slice(copied, index)}<td data-label="${label}"${attributes}>`;
      copied = index + tag.length;
    }
  }
  return labelled + markup.slice(copied);
}

/** Extracts label text from escaped markup; text for screen readers only is dropped. */
function textOf(markup: string): string {
  return markup
    .replace(/<span class="hidden">[^<]*<\/span>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .replaceAll('"', "&quot;")
    .trim();
}

function spanOf(attributes: string): number {
  return Number(/\bcolspan="(\d{1,3})"/.exec(attributes)?.[1] ?? 1);
}
