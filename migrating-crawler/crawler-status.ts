/** What a crawler tells its host about itself: in the log once in a while, and on its own page. */
export interface CrawlerStatus {
  readonly name: string;
  readonly connected: boolean;
  readonly crawlerId: number | null;
  readonly openHosts: number;
  readonly spooledResults: number;
  readonly pages: number;
  readonly pagesPerMinute: number;
  /** Bodies as they came over the wire, and decoded; everything that was sent to the coordinator. */
  readonly fetchedBytes: number;
  readonly bodyBytes: number;
  readonly shippedBytes: number;
  /** `bodyBytes / shippedBytes`; null before anything was shipped. */
  readonly timesSmaller: number | null;
  /** What holds the crawler back, in words; empty when nothing does. */
  readonly holdingBack: readonly string[];
}
