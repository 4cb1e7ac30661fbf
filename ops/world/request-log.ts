/** What the origins were asked, the latest requests only: what shows that a crawl was polite. */

export interface LoggedRequest {
  readonly host: string;
  readonly path: string;
  readonly method: string;
  /** 0: it got no answer. */
  readonly status: number;
  /** When the request's head had arrived, ms since the epoch. */
  readonly atMs: number;
  /** Through whose proxy it came; null when it came straight to the origin's port. */
  readonly crawlerIndex: number | null;
  readonly userAgent: string;
}

/** A ring: the oldest requests are forgotten when it is full. */
export class RequestLog {
  readonly #limit: number;
  readonly #ring: LoggedRequest[] = [];
  #total = 0;

  constructor(limit = 200_000) {
    this.#limit = limit;
  }

  add(request: LoggedRequest): void {
    this.#ring[this.#total % this.#limit] = request;
    this.#total++;
  }

  /** Requests ever, forgotten ones included. */
  get total(): number {
    return this.#total;
  }

  /** Those remembered, oldest first. */
  entries(): LoggedRequest[] {
    if (this.#total <= this.#limit) return [...this.#ring];
    const split = this.#total % this.#limit;
    return [...this.#ring.slice(split), ...this.#ring.slice(0, split)];
  }
}
