/** What a process said last, and how it ended: kept short, for the log, the next process and the coordinator. */

/** Lines of standard error, and characters of each. */
const mostLines = 20;
const mostLineCharacters = 300;
/** Of the protocol's `words`. */
const mostReasonCharacters = 500;

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

export class LastWords {
  #lines: string[] = [];

  add(line: string): void {
    const text = line.trim();
    if (text === "") return;
    this.#lines.push(text.slice(0, mostLineCharacters));
    if (this.#lines.length > mostLines) this.#lines.shift();
  }

  /** How it ended, then as many of the last lines as there is room for; the newest are kept. */
  reason(end: string): string {
    const said = this.#lines.filter(isTelling).join(" | ");
    if (said === "") return end.slice(0, mostReasonCharacters);
    const room = mostReasonCharacters - end.length - 2;
    return room < 20 ? end.slice(0, mostReasonCharacters) : `${end}: ${said.slice(-room)}`;
  }
}

export function endWords({ code, signal }: ProcessEnd): string {
  return signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
}

/** Where in the bundle it happened says nothing to anybody at the other end. */
const isTelling = (line: string) => !/^(at |\^|node:internal|file:\/\/|Node\.js v)/.test(line);
