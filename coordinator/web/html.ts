/**
 * Templates that escape by default: every value put into `html` is text unless it was made by `html` itself.
 * Attribute values must stand in double quotes in the template; then no value can leave its attribute.
 */
const brand: unique symbol = Symbol("html");

export interface Html {
  readonly [brand]: true;
  readonly markup: string;
}

export type HtmlValue = Html | string | number | null | undefined | false | readonly HtmlValue[];

export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let markup = strings[0] ?? "";
  for (let index = 0; index < values.length; index++) {
    markup += markupOf(values[index]) + (strings[index + 1] ?? "");
  }
  return { [brand]: true, markup };
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export const nothing: Html = html``;

/** A link target from outside: only the web's own schemes, never a script. Null when it is none of them. */
export function safeHref(url: string): string | null {
  return /^https?:\/\//i.test(url) ? url : null;
}

/** A path of our own with a query; every value is encoded. */
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

/** As forms encode; a page has some fifty such links, most of plain words. */
function encoded(text: string): string {
  if (/^[\w.*-]*$/.test(text)) return text;
  return /^[\w.* -]*$/.test(text)
    ? text.replaceAll(" ", "+")
    : `${new URLSearchParams([["", text]])}`.slice(1);
}

function markupOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return "";
  if (typeof value === "string") return escapeText(value);
  if (typeof value === "number") return String(value);
  if (isHtml(value)) return value.markup;
  return value.map(markupOf).join("");
}

function isHtml(value: Html | readonly HtmlValue[]): value is Html {
  return brand in value;
}

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
}

/** Tables for programs and spreadsheets (RFC 4180). */

export interface CsvTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number | boolean | null)[])[];
}

/** Lines end with CRLF; null is an empty field. */
export function csvText({ columns, rows }: CsvTable): string {
  return [columns, ...rows].map((row) => `${row.map(csvField).join(",")}\r\n`).join("");
}

/**
 * A text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP, CSV injection): names of
 * networks and pages come from outside.
 */
export function csvField(value: string | number | boolean | null): string {
  if (value === null) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
