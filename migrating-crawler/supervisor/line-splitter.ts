/** Lines of a process's output, from the pieces in which it arrives: each of a bounded length, also without an end. */
import { StringDecoder } from "node:string_decoder";

/** A longer line is cut into several. */
const mostCharacters = 16_384;

export class LineSplitter {
  readonly #onLine: (line: string) => void;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  add(piece: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(piece)).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#give(line);
    while (this.#rest.length > mostCharacters) {
      this.#give(this.#rest.slice(0, mostCharacters));
      this.#rest = this.#rest.slice(mostCharacters);
    }
  }

  /** What stands there without a line's end is a line, too. */
  end(): void {
    if (this.#rest !== "") this.#give(this.#rest);
    this.#rest = "";
  }

  #give(line: string): void {
    for (let from = 0; from === 0 || from < line.length; from += mostCharacters) {
      this.#onLine(line.slice(from, from + mostCharacters));
    }
  }
}
