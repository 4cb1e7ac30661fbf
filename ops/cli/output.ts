/**
 * How commands print: text for people (tables: table.ts), JSON for programs, progress as one rewritten line on a
 * terminal and plain lines elsewhere.
 */
export { type Column, formatTable } from "./table.ts";

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
