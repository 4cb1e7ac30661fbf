/**
 * Tables for people: columns in line, and on a terminal no wider than it is. What is cut ends in an ellipsis;
 * numbers are never cut, and in a pipe or a file nothing is.
 */
import { hasColours, paint, type Style } from "./colour.ts";

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** How a cell is painted; the column's text is laid out before. */
  readonly style?: (cell: string) => Style | null;
}

export interface TablePaper {
  /** Characters in a line; null: as many as it takes. */
  readonly width: number | null;
  readonly colours: boolean;
}

/** Narrower, a name tells nothing any more. */
const leastWidth = 8;
const gap = "  ";

export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paper: TablePaper = terminalPaper(),
): string {
  const wanted = columns.map((column, index) =>
    Math.max(column.title.length, ...rows.map((row) => (row[index] ?? "").length)),
  );
  const widths = fitted(columns, wanted, paper.width);
  const line = (cells: readonly string[], styleOf: (column: Column, cell: string) => Style | null) =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? "";
        const width = widths[index] ?? 0;
        const text = cut(cell, width);
        const style = styleOf(column, cell);
        const shown = style === null ? text : paint(style, text, paper.colours);
        const space = " ".repeat(Math.max(0, width - text.length));
        return column.align === "right" ? space + shown : shown + space;
      })
      .join(gap)
      .trimEnd();
  return [
    line(
      columns.map(({ title }) => title),
      () => "strong",
    ),
    line(
      widths.map((width) => "─".repeat(width)),
      () => "soft",
    ),
    ...rows.map((row) => line(row, (column, cell) => column.style?.(cell) ?? null)),
  ].join("\n");
}

export function terminalPaper(stream: NodeJS.WriteStream = process.stdout): TablePaper {
  return { width: stream.isTTY ? Math.max(40, stream.columns ?? 80) : null, colours: hasColours(stream) };
}

/** Takes from the widest column of text until the line fits, or none has anything to give. */
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
