/** Answers kept for seconds, so that the next page of results, and whoever asks the same, costs next to nothing. */
import { LRUCache } from "lru-cache";

/** A ranking takes about 200 KB. */
const keptAnswers = 200;
const keptMs = 10_000;

export class KeptAnswers {
  readonly #answers: LRUCache<string, object>;
  readonly #making = new Map<string, Promise<object>>();

  /** `nowMs` is a clock that never goes back. */
  constructor(nowMs: () => number) {
    this.#answers = new LRUCache({ max: keptAnswers, ttl: keptMs, ttlResolution: 0, perf: { now: nowMs } });
  }

  /** A question asked by several at once is answered once. `make` decides the type: a question names one. */
  async of<T extends object>(question: string, make: () => Promise<T>): Promise<T> {
    const known = this.#answers.get(question) ?? this.#making.get(question);
    if (known !== undefined) return (await known) as T;
    const making = make();
    this.#making.set(question, making);
    try {
      const answer = await making;
      this.#answers.set(question, answer);
      return answer;
    } finally {
      this.#making.delete(question);
    }
  }
}
