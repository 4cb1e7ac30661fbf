/**
 * How far what a source publishes can be trusted to say where a subnet lies: of the subnets that were measured, how often
 * the crawlers that were near to the others of the same published place were near to this one, too. A source that lies, or is
 * out of date, loses its weight by that alone; nothing else is known about it.
 */

/** What a source starts with, in subnets: a stranger is believed, but not for long. */
const priorRight = 2;
const priorWrong = 1;

/** Of what was seen, so much is still counted after each new one: some hundred subnets are remembered. */
const memory = 0.99;

/** Sources that are remembered; who was heard of longest ago goes. */
const mostSources = 20_000;

interface Seen {
  right: number;
  wrong: number;
}

export class SourceTrust {
  readonly #seen = new Map<string, Seen>();

  /** 0 to 1. */
  of(source: string): number {
    const { right = 0, wrong = 0 } = this.#seen.get(source) ?? {};
    return (priorRight + right) / (priorRight + priorWrong + right + wrong);
  }

  /** `right`: of what could be held against it, the share that fitted, 0 to 1. */
  note(source: string, right: number): void {
    const seen = this.#seen.get(source) ?? { right: 0, wrong: 0 };
    this.#seen.delete(source);
    this.#seen.set(source, seen);
    seen.right = seen.right * memory + right;
    seen.wrong = seen.wrong * memory + (1 - right);
    const [oldest] = this.#seen.size > mostSources ? this.#seen.keys() : [];
    if (oldest !== undefined) this.#seen.delete(oldest);
  }
}
