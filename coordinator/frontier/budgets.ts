/**
 * How many hosts that nobody knew each crawler's results have named today (UTC). One that names them without end
 * would fill the frontier, and have the whole fleet ask whom it likes. In memory: a coordinator that starts anew
 * begins at zero.
 */
import type { CrawlerId } from "#core/ids";

const dayMs = 86_400_000;

export class NewHostBudget {
  readonly #perDay: () => number;
  #day = Number.NaN;
  readonly #named = new Map<CrawlerId, number>();

  /** `perDay`: or what gives it, where it may change. */
  constructor(perDay: number | (() => number)) {
    this.#perDay = typeof perDay === "number" ? () => perDay : perDay;
  }

  get perDay(): number {
    return this.#perDay();
  }

  left(crawlerId: CrawlerId, now: Date): number {
    this.#turnPage(now);
    return Math.max(0, this.perDay - (this.#named.get(crawlerId) ?? 0));
  }

  spend(crawlerId: CrawlerId, hosts: number, now: Date): void {
    this.#turnPage(now);
    if (hosts > 0) this.#named.set(crawlerId, (this.#named.get(crawlerId) ?? 0) + hosts);
  }

  #turnPage(now: Date): void {
    const day = Math.floor(now.getTime() / dayMs);
    if (day === this.#day) return;
    this.#day = day;
    this.#named.clear();
  }
}
