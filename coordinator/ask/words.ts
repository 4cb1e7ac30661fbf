/** Writes cells and prose for pages, terminals and CSV. */
import { bytesText, instantWords, msText, percentText, spanWords } from "#core/format";
import { printable } from "#core/terminal-text";
import { countText, instant } from "../web/format.ts";
import { type HtmlValue, html } from "../web/html.ts";
import type { Column, Inline, Unit } from "./operation.ts";

const units: Readonly<Record<Exclude<Unit, (value: number) => string>, (value: number) => string>> = {
  count: countText,
  bytes: bytesText,
  ms: msText,
  seconds: spanWords,
  share: percentText,
};

/** How a value is written: its unit, and the text for an unknown value. */
type Written = Pick<Column<unknown>, "unit" | "none">;

function shown(value: Inline | boolean, { unit, none = "–" }: Written = {}): Inline {
  if (value === null || value === undefined || value === "") return none;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number" || unit === undefined) return value;
  return typeof unit === "string" ? units[unit](value) : unit(value);
}

export function htmlOf(value: Inline | boolean, written?: Written): HtmlValue {
  const one = shown(value, written);
  return one instanceof Date ? instant(one) : one;
}

export function htmlCell<Row>(column: Column<Row>, row: Row): HtmlValue {
  const to = column.link?.(row) ?? null;
  const more = column.more?.(row);
  const inner = htmlOf(column.cell(row), column);
  const linked = to === null ? inner : html`<a href="${to}">${inner}</a>`;
  return isNothing(more) ? linked : html`${linked}<span class="small">${htmlOf(more)}</span>`;
}

export const isNothing = (value: Inline | undefined) =>
  value === null ||
  value === undefined ||
  value === "" ||
  value === false ||
  (typeof value === "object" && "markup" in value && value.markup === "");

/** Maximum number of characters of a cell on a terminal. */
const mostInCell = 300;

export function textCell<Row>(column: Column<Row>, row: Row): string {
  const text = textOf(column.cell(row), column);
  const more = column.more?.(row);
  // Links alone are not shown on a terminal.
  const words = isNothing(more) ? "" : textOf(more as Inline, { none: "" }).trim();
  return words === "" ? text : `${text} (${words})`;
}

export function textOf(value: Inline | boolean, written?: Written, most = mostInCell): string {
  const one = shown(value, written);
  return printable(one instanceof Date ? instantWords(one.toISOString()) : plainText(one), most);
}

export function csvCell<Row>(column: Column<Row>, row: Row): string | number | boolean | null {
  const value = column.value === undefined ? column.cell(row) : column.value(row);
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? plainText(value) : value;
}

const entities: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
};

/**
 * Returns the words of one of our own templates, in which every "<" outside a tag is escaped. It omits text for screen
 * readers, links in small print, and folded content except for a word diff. Small print follows in round brackets. Removed
 * and added text is in the brackets of a word diff, [-…-] and {+…+}.
 */
export function plainText(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return "";
  if (typeof value !== "object") return String(value);
  const markup = "markup" in value ? value.markup : html`${value}`.markup;
  return markup
    .replace(/<span class="hidden">[^<]*<\/span>|<a class="small"[\s\S]*?<\/a>/g, "")
    .replace(/<details\b(?! class="difference")[\s\S]*?<\/details>|<summary\b[\s\S]*?<\/summary>/g, "")
    .replace(/(?<=\S\s*)<span class="small">\s*([\s\S]*?)\s*<\/span>/g, (_, small: string) =>
      small === "" ? "" : ` (${small})`,
    )
    .replace(/<(del|ins)>([\s\S]*?)<\/\1>/g, (_, tag: string, text: string) =>
      tag === "del" ? `[-${text}-]` : `{+${text}+}`,
    )
    .replace(/<(svg|form|script)\b[\s\S]*?<\/\1>/g, "")
    .replace(/<(li|br|p|dt|div)\b[^>]*>/g, " ")
    .replace(/<[^>]*>/g, "")
    .replace(/&(amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? entity)
    .replace(/\s+/g, " ")
    .trim();
}

/** Whether the value consists only of links, which a terminal cannot follow. */
export const isOnlyLinks = (value: HtmlValue): boolean =>
  html`${value}`.markup.replace(/<a\b[\s\S]*?<\/a>|<[^>]*>|·|\s/g, "") === "";

/** Quotes a text so that a shell takes it as one word. */
export const shellWord = (text: string) =>
  /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
