/** What pages and tables for programs are made of besides the template that escapes (#core/html). */
import { type Html, type HtmlValue, html, safeHref } from "#core/html";

export { type Html, type HtmlValue, html, safeHref };

export const nothing: Html = html``;

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
