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
