import { setTimeout as delay } from "node:timers/promises";
import { timerMs } from "./timer-ms.ts";

/** Of thousands who ask one after the other, so long is gathered at most: a piece of work costs about as much as 20 items in it. */
const usualLingerMs = 40;

/** For what a fleet that arrives at once asks for, of which each has to wait its turn in any case. */
export const arrivalLingerMs = 250;

/** For each that the last piece was made for: a few hardly wait. */
const lingerEachMs = 20;

/**
 * The same work for many who ask at once: one piece is under way at a time, and whoever asks meanwhile goes together in
 * the next, for which more are waited for a moment. Who asks alone waits for nobody; of thousands, a few pieces are made.
 */
export class Gathered<Item, Answer> {
  readonly #work: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #most: number;
  readonly #mostLingerMs: number;
  #waiting: Waiting<Item, Answer>[] = [];
  #isWorking = false;

  /** `work` begins after all of its items were asked for, and answers in their order; `most` of them at once. */
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

  /** What fails together is tried one by one: nobody fails for what another asked. */
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
 * So many pieces of work at a time, the others in the order in which they came: who waits here holds nothing, where a
 * pool of connections would give up on it.
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
      // Whose turn comes takes the place over.
      const next = this.#waiting.shift();
      if (next === undefined) this.#working -= 1;
      else next();
    }
  }
}

/** Crawlers that arrive at once, of which one statement tells. */
const mostArrivals = 200;

/** What a whole fleet may ask for as it arrives at once. */
export const gatherArrivals = <Item, Answer>(
  work: (items: readonly Item[]) => Promise<readonly Answer[]>,
): Gathered<Item, Answer> => new Gathered(work, mostArrivals, arrivalLingerMs);
