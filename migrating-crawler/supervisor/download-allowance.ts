/**
 * Limits the supervisor's downloads: its lists and bundles count towards the crawler's bytes per second, day and month.
 * A running crawler is told and pays from its own bucket; otherwise the ledger on disk is updated here.
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
  /** Reports bytes to the crawler; returns false when none runs. */
  tell: (bytes: number) => boolean = () => false;

  /** `limits` is called repeatedly, because settings change. */
  constructor({ home, limits }: { readonly home: string; readonly limits: () => DownloadLimits }) {
    this.#home = home;
    this.#limits = limits;
    this.#rate = new TransferRate(limits().kilobytesPerSecond);
  }

  /** Null means no limit. */
  get bytesPerSecond(): number | null {
    const { kilobytesPerSecond } = this.#limits();
    return kilobytesPerSecond === null ? null : kilobytesPerSecond * 1024;
  }

  /** The bytes left of the day and the month. */
  leftBytes(): number {
    return this.#caps().leftBytes("ship");
  }

  /** Returns null to continue, or a promise to wait for. */
  take(bytes: number): Promise<void> | null {
    if (this.#isClosed) return null;
    this.#rate.apply(this.#limits().kilobytesPerSecond);
    return this.#rate.take(bytes);
  }

  /** Receives the total that a connection has carried. */
  carried(bytes: number): void {
    if (bytes === 0 || this.tell(bytes)) return;
    const caps = this.#caps();
    caps.count(0, bytes);
    caps.close();
  }

  /** Releases everyone who waits. */
  close(): void {
    this.#isClosed = true;
    this.#rate.close();
  }

  #caps(): UsageCaps {
    const kept = { home: this.#home, warn: () => {} };
    return new UsageCaps({ limits: this.#limits(), kept, now: () => new Date() });
  }
}
