/**
 * What the supervisor may fetch: its lists and bundles count against the same bytes of the second, day and month as all
 * that the crawler carries. While a crawler runs it is told, and its own bucket pays; else the ledger on disk is written
 * here.
 */

import { TransferRate } from "../limits/transfer-rate.ts";
import { UsageCaps } from "../limits/usage-caps.ts";
import type { CrawlerLimits } from "../settings/limits-config.ts";

export type DownloadLimits = Pick<
  CrawlerLimits,
  "bytesPerDay" | "bytesPerMonth" | "kilobytesPerSecond" | "pagesPerDay" | "timeZone"
>;

export class DownloadAllowance {
  readonly #home: string;
  readonly #limits: () => DownloadLimits;
  readonly #rate: TransferRate;
  #isClosed = false;
  /** Tells the crawler of bytes; false: none runs. */
  tell: (bytes: number) => boolean = () => false;

  /** `limits`: asked again and again, settings change. */
  constructor({ home, limits }: { readonly home: string; readonly limits: () => DownloadLimits }) {
    this.#home = home;
    this.#limits = limits;
    this.#rate = new TransferRate(limits().kilobytesPerSecond);
  }

  /** Null: no limit. */
  get bytesPerSecond(): number | null {
    const { kilobytesPerSecond } = this.#limits();
    return kilobytesPerSecond === null ? null : kilobytesPerSecond * 1024;
  }

  /** Of the day and the month. */
  leftBytes(): number {
    return this.#caps().leftBytes("ship");
  }

  /** Null: go on, else when to. */
  take(bytes: number): Promise<void> | null {
    if (this.#isClosed) return null;
    this.#rate.apply(this.#limits().kilobytesPerSecond);
    return this.#rate.take(bytes);
  }

  /** A connection has carried so much, all in all. */
  carried(bytes: number): void {
    if (bytes === 0 || this.tell(bytes)) return;
    const caps = this.#caps();
    caps.count(0, bytes);
    caps.close();
  }

  /** Nobody waits any more, from now on. */
  close(): void {
    this.#isClosed = true;
    this.#rate.close();
  }

  #caps(): UsageCaps {
    const kept = { home: this.#home, warn: () => {} };
    return new UsageCaps({ limits: this.#limits(), kept, now: () => new Date() });
  }
}
