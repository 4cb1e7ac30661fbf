/**
 * Text for a terminal: tables that fit its width, colours where it supports them, and external text without control sequences.
 */
import { styleText } from "node:util";

// Aligned tables, no wider than the terminal. Cut text ends in an ellipsis. Numbers are never cut, and in a pipe or file
// nothing is.

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
}

export interface Paper {
  readonly width: number | null;
  readonly colours: boolean;
}

const leastWidth = 8;

const gap = "  ";

export function tableText(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paper: Paper,
): string {
  const wanted = columns.map((column, index) =>
    Math.max(column.title.length, ...rows.map((row) => (row[index] ?? "").length)),
  );
  const widths = fitted(columns, wanted, paper.width);
  const line = (cells: readonly string[], style: Style | null = null) =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? "";
        const width = widths[index] ?? 0;
        const text = cut(cell, width);
        const shown = style === null ? text : painted(style, text, paper);
        const space = " ".repeat(Math.max(0, width - text.length));
        return column.align === "right" ? space + shown : shown + space;
      })
      .join(gap)
      .trimEnd();
  return [
    line(
      columns.map(({ title }) => title),
      "strong",
    ),
    line(
      widths.map((width) => "─".repeat(width)),
      "soft",
    ),
    ...rows.map((row) => line(row)),
  ].join("\n");
}

/** Shrinks the widest text column until the line fits or no column can shrink. */
function fitted(columns: readonly Column[], wanted: readonly number[], most: number | null): number[] {
  const widths = [...wanted];
  if (most === null) return widths;
  let over = widths.reduce((sum, width) => sum + width, 0) + gap.length * (columns.length - 1) - most;
  while (over > 0) {
    const widest = widestText(columns, widths);
    if (widest === null) break;
    widths[widest]! -= 1;
    over -= 1;
  }
  return widths;
}

function widestText(columns: readonly Column[], widths: readonly number[]): number | null {
  let widest: number | null = null;
  for (const [index, column] of columns.entries()) {
    const width = widths[index] ?? 0;
    if (column.align === "right" || width <= Math.max(leastWidth, column.title.length)) continue;
    if (widest === null || width > (widths[widest] ?? 0)) widest = index;
  }
  return widest;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

// Colours are used only if the output supports them, and never carry meaning alone.

type Style = "strong" | "soft" | "good" | "warm" | "bad";

const formats = {
  strong: "bold",
  soft: "dim",
  good: "green",
  warm: "yellow",
  bad: "red",
} as const satisfies Record<Style, Parameters<typeof styleText>[0]>;

export function painted(style: Style, text: string, { colours }: Pick<Paper, "colours">): string {
  // The owner of the output decides whether there are colours, because Node would check another stream.
  return colours ? styleText(formats[style], text, { validateStream: false }) : text;
}

// External text on a terminal: titles, names and reasons may hold escape sequences and direction marks.

/** Replaces control characters by spaces, removes direction overrides and keeps at most `most` characters. */
export function printable(text: string, most = 400): string {
  const plain = text.replace(/\p{Cc}/gu, " ").replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  return plain.length > most ? `${plain.slice(0, most - 1)}…` : plain;
}
