import { styleText } from "node:util";

/**
 * How commands print: text for people (tables included), JSON for programs, progress as one rewritten line on a
 * terminal and plain lines elsewhere.
 */

/** Prints an answer: its text for people, itself for programs. */
export function printAnswer(options: { readonly json?: boolean }, answer: unknown, text: string): void {
  if (options.json) printJson(answer);
  else process.stdout.write(`${text}\n`);
}

/** Prints one JSON value and a line end. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

/** A progress line: rewritten in place on a terminal, printed at most every `plainSeconds` elsewhere. */
export class ProgressLine {
  readonly #stream: NodeJS.WriteStream;
  readonly #plainSeconds: number;
  #lastPlainMs = Number.NEGATIVE_INFINITY;
  #shown = false;

  constructor(stream: NodeJS.WriteStream = process.stderr, plainSeconds = 5) {
    this.#stream = stream;
    this.#plainSeconds = plainSeconds;
  }

  show(text: string, nowMs: number = performance.now()): void {
    if (this.#stream.isTTY) {
      const width = Math.max(20, (this.#stream.columns ?? 100) - 1);
      this.#stream.write(`\r\x1b[2K${text.slice(0, width)}`);
      this.#shown = true;
    } else if (nowMs - this.#lastPlainMs >= this.#plainSeconds * 1000) {
      this.#stream.write(`${text}\n`);
      this.#lastPlainMs = nowMs;
    }
  }

  /** Ends the line, so that what is printed next starts on its own. */
  done(): void {
    if (this.#shown) this.#stream.write("\n");
    this.#shown = false;
  }
}

// Tables for people: columns in line, and on a terminal no wider than it is. What is cut ends in an ellipsis;
// numbers are never cut, and in a pipe or a file nothing is.

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
}

interface TablePaper {
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
  const line = (cells: readonly string[], style: Style | null = null) =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? "";
        const width = widths[index] ?? 0;
        const text = cut(cell, width);
        const shown = style === null ? text : paint(style, text, paper.colours);
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

function terminalPaper(stream: NodeJS.WriteStream = process.stdout): TablePaper {
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

// Colours of what commands print: only on a terminal, and never where the reader asked for none (NO_COLOR, see
// no-color.org; TERM=dumb). FORCE_COLOR=1 keeps them in a pipe. A colour is never the only sign of anything.

export type Style = "strong" | "soft" | "good" | "warm" | "bad";

const formats = {
  strong: "bold",
  soft: "dim",
  good: "green",
  warm: "yellow",
  bad: "red",
} as const satisfies Record<Style, Parameters<typeof styleText>[0]>;

interface Paper {
  readonly isTTY?: boolean;
}

export function hasColours(paper: Paper = process.stdout, env: NodeJS.ProcessEnv = process.env): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "" && env.FORCE_COLOR !== "0") return true;
  return paper.isTTY === true && env.TERM !== "dumb";
}

/** The text in that style, or as it is where there are no colours. */
export function paint(style: Style, text: string, colours: boolean = hasColours()): string {
  // Whether there are colours is decided above, for Node itself looks at another stream.
  return colours ? styleText(formats[style], text, { validateStream: false }) : text;
}

// Text from outside on a terminal: titles, names and reasons may hold escape sequences and direction marks.

/** Control characters become spaces, direction overrides vanish; at most `most` characters are kept. */
export function printable(text: string, most = 400): string {
  const plain = text.replace(/\p{Cc}/gu, " ").replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  return plain.length > most ? `${plain.slice(0, most - 1)}…` : plain;
}

/**
 * Writes to standard output and waits until it is taken, so that a slow reader slows the writer instead of
 * filling its memory. False when nobody reads any more (`… | head`): the command then ends without a word.
 */
export function writeOut(text: string): Promise<boolean> {
  // The failure arrives at the callback too; without a listener it would end the process with a stack.
  if (process.stdout.listenerCount("error") === 0) process.stdout.on("error", () => {});
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (!error) resolve(true);
      else if ((error as NodeJS.ErrnoException).code === "EPIPE") resolve(false);
      else reject(error);
    });
  });
}
