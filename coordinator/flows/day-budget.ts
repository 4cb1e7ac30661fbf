/**
 * Pages that each crawler has fetched today (UTC), against what its partner allows a day (paper section 4.4:
 * the size a crawler has to check each day). Kept in memory and read back from the fetches at the start.
 */
import type { CrawlerId } from "#core/ids";

export class DayBudget {
  #day = "";
  readonly #spent = new Map<CrawlerId, number>();

  /** What was fetched today before this coordinator started. */
  restore(spent: readonly { readonly crawlerId: CrawlerId; readonly pages: number }[], now: Date): void {
    this.#turnPage(now);
    for (const { crawlerId, pages } of spent) this.spend(crawlerId, pages, now);
  }

  spend(crawlerId: CrawlerId, pages: number, now: Date): void {
    this.#turnPage(now);
    this.#spent.set(crawlerId, (this.#spent.get(crawlerId) ?? 0) + pages);
  }

  left(crawlerId: CrawlerId, pagesPerDay: number, now: Date): number {
    this.#turnPage(now);
    return Math.max(0, pagesPerDay - (this.#spent.get(crawlerId) ?? 0));
  }

  #turnPage(now: Date): void {
    const day = now.toISOString().slice(0, 10);
    if (day === this.#day) return;
    this.#day = day;
    this.#spent.clear();
  }
}
