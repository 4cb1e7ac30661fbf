/**
 * Pages a day, bytes a day and bytes a month. Bytes are what the crawler's connections really carried (wire-meter):
 * settled several times a second, and a body's at once, as they are read.
 *
 *   used   0 ─────────────────────── 98.8 % ─────── 99.4 % ─────── 100 %
 *          everything goes on          no fetching,   no results     the link is closed, too,
 *                                      no probes      are shipped    until the day or month ends
 *
 * The steps leave room for what is under way when the first is reached, and for the link's own few bytes.
 */

import type { KeptSettings } from "./kept-file.ts";
import { KeptUsage } from "./kept-usage.ts";
import { bytesInWords, type LimitUsage } from "./limit-usage.ts";
import type { CrawlerLimits } from "./limits-config.ts";
import { LocalTime } from "./local-time.ts";
import { bytesOfMonth, type UsageLedger } from "./usage-ledger.ts";

type Caps = Pick<CrawlerLimits, "pagesPerDay" | "bytesPerDay" | "bytesPerMonth" | "timeZone">;

export interface UsageCapsSettings {
  readonly limits: Caps;
  readonly kept: KeptSettings;
  readonly now: () => Date;
}

/** How far the bytes of a cap may go. */
const parts = { fetch: 0.988, ship: 0.994, link: 1 } as const;
export type BytesFor = keyof typeof parts;
/** Written down ahead, of the smallest cap, besides what is expected: what a kill costs at most. */
const stepPart = 1 / 200;
const mostStepBytes = 32 * 1024 * 1024;

export class UsageCaps {
  #limits: Caps;
  #time: LocalTime;
  readonly #now: () => Date;
  readonly #usage: KeptUsage;

  constructor({ limits, kept, now }: UsageCapsSettings) {
    this.#limits = limits;
    this.#time = new LocalTime(limits.timeZone);
    this.#now = now;
    this.#usage = new KeptUsage(kept);
    this.apply(limits);
  }

  apply(limits: Caps): void {
    if (limits.timeZone !== this.#limits.timeZone) this.#time = new LocalTime(limits.timeZone);
    this.#limits = limits;
    const least = Math.min(limits.bytesPerDay, limits.bytesPerMonth ?? Number.POSITIVE_INFINITY);
    this.#usage.step = {
      pages: Math.floor(limits.pagesPerDay * stepPart),
      bytes: Math.min(mostStepBytes, Math.max(1024, Math.floor(least * stepPart))),
    };
  }

  count(pages: number, bytes: number): void {
    this.#ledger();
    this.#usage.add(pages, bytes);
  }

  /** So many bytes are about to come; negative: they have been counted, or do not come. */
  expect(bytes: number): void {
    this.#ledger();
    this.#usage.expect(bytes);
  }

  /** Bytes that may still be carried for this. */
  leftBytes(purpose: BytesFor): number {
    const ledger = this.#ledger();
    const { bytesPerDay, bytesPerMonth } = this.#limits;
    const part = parts[purpose];
    const left = bytesPerDay * part - ledger.today.bytes;
    return bytesPerMonth === null ? left : Math.min(left, bytesPerMonth * part - bytesOfMonth(ledger));
  }

  hasPages(): boolean {
    return this.leftPages() > 0;
  }

  leftPages(): number {
    return Math.max(0, this.#limits.pagesPerDay - this.#ledger().today.pages);
  }

  usage(): LimitUsage[] {
    const ledger = this.#ledger();
    const now = this.#now();
    const { pagesPerDay, bytesPerDay, bytesPerMonth } = this.#limits;
    const { pages, bytes } = ledger.today;
    const dayEnd = this.#time.dayEnd(now);
    const monthEnd = this.#time.monthEnd(now);
    const monthBytes = bytesOfMonth(ledger);
    return [
      {
        ...{ limit: "pagesPerDay", unit: "pages", used: pages, cap: pagesPerDay, resetsAt: dayEnd },
        holdingBack: pages >= pagesPerDay ? `the day's ${pagesPerDay} pages are fetched` : "",
      },
      {
        ...{ limit: "bytesPerDay", unit: "bytes", used: bytes, cap: bytesPerDay, resetsAt: dayEnd },
        holdingBack: spentWords(bytes, bytesPerDay, "day"),
      },
      {
        ...{
          limit: "bytesPerMonth",
          unit: "bytes",
          used: monthBytes,
          cap: bytesPerMonth,
          resetsAt: monthEnd,
        },
        holdingBack: bytesPerMonth === null ? "" : spentWords(monthBytes, bytesPerMonth, "month"),
      },
    ];
  }

  /** What holds all fetching back, in words; empty when nothing does. */
  spent(): string {
    if (this.hasPages() && this.leftBytes("fetch") > 0) return "";
    return this.usage().find(({ holdingBack }) => holdingBack !== "")?.holdingBack ?? "";
  }

  close(): void {
    this.#usage.close();
  }

  #ledger(): UsageLedger {
    this.#usage.turnTo(this.#time.at(this.#now()).day);
    return this.#usage.ledger;
  }
}

function spentWords(used: number, cap: number, time: "day" | "month"): string {
  return used >= cap * parts.fetch ? `the ${time}'s ${bytesInWords(cap)} are used up` : "";
}
