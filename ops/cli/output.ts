import { type Column, type Paper, tableText } from "#core/terminal-text";

/**
 * How commands print: text for people (tables included), JSON for programs, and progress as one rewritten line on a terminal or
 * plain lines elsewhere.
 */

export function printAnswer(options: { readonly json?: boolean }, answer: unknown, text: string): void {
  if (options.json) printJson(answer);
  else process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

/** A progress line. On a terminal it is rewritten in place, elsewhere printed at most every `plainSeconds`. */
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

  /** Ends the line, so that other output starts on a new one. */
  done(): void {
    if (this.#shown) this.#stream.write("\n");
    this.#shown = false;
  }
}

/**
 * Writes to standard output and waits until it is accepted, so that a slow reader slows the writer instead of filling memory.
 * Returns false when the reader is gone (`… | head`), after which the command should end silently.
 */
export function writeOut(text: string): Promise<boolean> {
  // The failure also reaches the callback. Without a listener it would end the process with a stack trace.
  if (process.stdout.listenerCount("error") === 0) process.stdout.on("error", () => {});
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (!error) resolve(true);
      else if ((error as NodeJS.ErrnoException).code === "EPIPE") resolve(false);
      else reject(error);
    });
  });
}

/** Example: `4,000 of about 20,000 · 500/s · 32 s left`. `expected` is 0 if unknown. The rate appears after half a second. */
export function paceText(done: number, expected: number, elapsedSeconds: number): string {
  const rate = elapsedSeconds > 0.5 && done > 0 ? done / elapsedSeconds : null;
  const parts = [`${countText(done)}${expected > done ? ` of about ${countText(expected)}` : ""}`];
  if (rate !== null) parts.push(`${countText(rate)}/s`);
  if (rate !== null && expected > done) parts.push(`${secondsText((expected - done) / rate)} left`);
  return parts.join(" · ");
}

/** Examples: `0.4 s`, `12 s`, `3 min 20 s`. */
export function secondsText(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export const countText = (value: number) => Math.round(value).toLocaleString("en");

/** Aligns columns into a table that is no wider than the terminal. */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paper: Paper = terminalPaper(),
): string {
  return tableText(columns, rows, paper);
}

export function terminalPaper(stream: NodeJS.WriteStream = process.stdout): Paper {
  return { width: stream.isTTY ? Math.max(40, stream.columns ?? 80) : null, colours: hasColours(stream) };
}

/** Colours only a terminal, unless NO_COLOR (no-color.org) or TERM=dumb is set. FORCE_COLOR=1 enables colours in pipes. */
export function hasColours(
  stream: { readonly isTTY?: boolean } = process.stdout,
  env: NodeJS.ProcessEnv = process.env,
): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "" && env.FORCE_COLOR !== "0") return true;
  return stream.isTTY === true && env.TERM !== "dumb";
}
