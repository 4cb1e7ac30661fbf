/** Summarises the crawler's work for periodic log lines and for the coordinator's heartbeats. */
import type { CrawlerHeartbeat } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";

export interface CrawlerStatus {
  readonly name: string;
  readonly connected: boolean;
  readonly crawlerId: number | null;
  readonly openHosts: number;
  readonly spooledResults: number;
  readonly pages: number;
  /** Bodies as transferred and as decoded, and everything sent to the coordinator. */
  readonly fetchedBytes: number;
  readonly bodyBytes: number;
  readonly shippedBytes: number;
  /** `bodyBytes / shippedBytes`, or null before anything was shipped. */
  readonly timesSmaller: number | null;
  /** Why the crawler is blocked; empty when it is not. */
  readonly holdingBack: readonly string[];
  /** Why the disk accepts no results, or null. */
  readonly diskFault: string | null;
  /** Null when the system does not report it. */
  readonly diskFreeBytes: number | null;
}

type Counted = "pages" | "fetchedBytes" | "bodyBytes" | "timesSmaller";

export function crawlerStatus(known: Omit<CrawlerStatus, Counted>, tally: Tally): CrawlerStatus {
  const { pages, fetchedBytes, bodyBytes } = tally;
  const { shippedBytes, holdingBack } = known;
  return {
    ...known,
    pages,
    fetchedBytes,
    bodyBytes,
    timesSmaller: shippedBytes === 0 ? null : Math.round((10 * bodyBytes) / shippedBytes) / 10,
    holdingBack: holdingBack.filter((word) => word !== "").map((word) => word.slice(0, 500)),
  };
}

export function heartbeatOf(status: CrawlerStatus): CrawlerHeartbeat {
  const { openHosts, spooledResults, pages, fetchedBytes, shippedBytes, bodyBytes, holdingBack } = status;
  const { diskFault, diskFreeBytes } = status;
  return {
    type: "crawler:heartbeat",
    openHosts,
    spooledResults,
    pages,
    fetchedBytes,
    shippedBytes,
    bodyBytes,
    holdingBack: [...holdingBack].slice(0, 10),
    ...(diskFault === null ? {} : { diskFault: diskFault.slice(0, 500) }),
    ...(diskFreeBytes === null ? {} : { diskFreeBytes }),
    time: new Date().toISOString(),
  };
}

/** Counts what the crawler has done since its start. */
export class Tally {
  pages = 0;
  /** Bodies as transferred and as decoded. */
  fetchedBytes = 0;
  bodyBytes = 0;

  /** Refusals without a request (robots, addresses) are not pages. */
  count(result: Pick<FetchResult, "outcome" | "wireBytes" | "bodyBytes">): void {
    const { type } = result.outcome;
    if (type === "refused-by-robots" || type === "refused-address" || type === "failed") return;
    this.pages++;
    this.fetchedBytes += result.wireBytes;
    this.bodyBytes += result.bodyBytes;
  }
}
