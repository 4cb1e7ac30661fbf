/**
 * Pages and bytes that each crawler has fetched today (UTC), against what its partner allows a day (paper
 * section 4.4: the size a crawler has to check each day). Kept in memory and read back from the fetches at
 * the start. A result is counted when it arrives, so the crawler's own limit, which counts at once, is the
 * one that holds to the byte.
 */

import type { CrawlerId } from "#core/ids";
import { defaultMeanPageBytes } from "../balance/capacity.ts";

export interface Spent {
  readonly pages: number;
  readonly bytes: number;
}

/** A crawler and its partner's limits. */
export interface DayLimits {
  readonly crawlerId: CrawlerId;
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
}

const msPerDay = 86_400_000;
const nothing: Spent = { pages: 0, bytes: 0 };
/** The usual size of a page counts as much as so many pages of today. */
const pagesOfUsualSize = 5;

export class DayBudget {
  #day = Number.NaN;
  readonly #spent = new Map<CrawlerId, Spent>();

  /** What was fetched today before this coordinator started. */
  restore(spent: readonly (Spent & { readonly crawlerId: CrawlerId })[], now: Date): void {
    for (const one of spent) this.spend(one.crawlerId, one, now);
  }

  spend(crawlerId: CrawlerId, { pages, bytes }: Spent, now: Date): void {
    this.#turnPage(now);
    const before = this.#spent.get(crawlerId) ?? nothing;
    this.#spent.set(crawlerId, { pages: before.pages + pages, bytes: before.bytes + bytes });
  }

  /** What was fetched today. */
  spent(crawlerId: CrawlerId, now: Date): Spent {
    this.#turnPage(now);
    return this.#spent.get(crawlerId) ?? nothing;
  }

  /** Pages that both limits still allow today, at the mean size of today's pages. */
  left({ crawlerId, pagesPerDay, bytesPerDay }: DayLimits, now: Date): number {
    const { pages, bytes } = this.spent(crawlerId, now);
    const meanPageBytes = (bytes + pagesOfUsualSize * defaultMeanPageBytes) / (pages + pagesOfUsualSize);
    const pagesInBytes = bytes >= bytesPerDay ? 0 : Math.ceil((bytesPerDay - bytes) / meanPageBytes);
    return Math.max(0, Math.min(pagesPerDay - pages, pagesInBytes));
  }

  #turnPage(now: Date): void {
    const day = Math.floor(now.getTime() / msPerDay);
    if (day === this.#day) return;
    this.#day = day;
    this.#spent.clear();
  }
}
