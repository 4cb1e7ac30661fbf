import { setTimeout as delay } from "node:timers/promises";
import { timerMs } from "./timer-ms.ts";

/** Maximum time for which requests are gathered. One piece of work costs about as much as 20 items in it. */
const usualLingerMs = 40;

/** A longer wait for when a whole fleet connects at once, so that each crawler must wait anyway. */
export const arrivalLingerMs = 250;

/** After a batch, the next one waits this long per item of the last, so that few items hardly wait. */
const lingerEachMs = 20;

/**
 * Combines concurrent requests for the same work. One batch runs at a time. Requests that arrive meanwhile go into the next
 * one, which waits a moment for more. A single request does not wait.
 */
export class Gathered<Item, Answer> {
  readonly #work: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #most: number;
  readonly #mostLingerMs: number;
  #waiting: Waiting<Item, Answer>[] = [];
  #isWorking = false;

  /** `work` gets at most `most` items, all requested before it begins, and returns their answers in the same order. */
  constructor(
    work: (items: readonly Item[]) => Promise<readonly Answer[]>,
    most: number,
    mostLingerMs = usualLingerMs,
  ) {
    this.#work = work;
    this.#most = most;
    this.#mostLingerMs = mostLingerMs;
  }

  ask(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (!this.#isWorking) void this.#goOn();
    });
  }

  async #goOn(): Promise<void> {
    this.#isWorking = true;
    while (this.#waiting.length > 0) {
      const together = this.#waiting.slice(0, this.#most);
      this.#waiting = this.#waiting.slice(this.#most);
      await this.#answer(together);
      const isCrowd = together.length > 1 && this.#waiting.length < this.#most;
      if (isCrowd) await delay(timerMs(Math.min(this.#mostLingerMs, lingerEachMs * together.length)));
    }
    this.#isWorking = false;
  }

  /** When a batch fails, its items are tried one by one, so that no item fails because of another. */
  async #answer(together: readonly Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#work(together.map(({ item }) => item));
      for (const [index, { resolve }] of together.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      if (together.length === 1) together[0]?.reject(error);
      else for (const one of together) await this.#answer([one]);
    }
  }
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs a limited number of tasks at a time and queues the rest in order. A queued request holds no database connection, since
 * the pool would time it out.
 */
export class AtOnce {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #working = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  async run<Done>(work: () => Promise<Done>): Promise<Done> {
    if (this.#working >= this.#most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#working += 1;
    try {
      return await work();
    } finally {
      // The next in the queue takes over the slot.
      const next = this.#waiting.shift();
      if (next === undefined) this.#working -= 1;
      else next();
    }
  }
}

/** Maximum number of arriving crawlers that one statement handles. */
const mostArrivals = 200;

/** Gathers the requests of a whole fleet that connects at once. */
export const gatherArrivals = <Item, Answer>(
  work: (items: readonly Item[]) => Promise<readonly Answer[]>,
): Gathered<Item, Answer> => new Gathered(work, mostArrivals, arrivalLingerMs);
