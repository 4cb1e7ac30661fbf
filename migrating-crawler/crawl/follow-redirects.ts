/**
 * Fetches one URL and follows its redirects in this process, applying all the rules of a lease to each hop (robots.txt,
 * address guard, pace, limits). It serves people who ask about one page. In a crawl, the coordinator instead admits each hop
 * and leases it to the crawler nearest to its host.
 */
import { urlHost } from "#core/ip/url-host";
import type { FetchResult } from "#protocol/result";
import { Failure } from "../core/failure.ts";
import { outcomeOfFailure } from "../fetch/fetch-page.ts";
import type { RobotsCache } from "../fetch/robots.ts";
import type { RobotsVerdict } from "../fetch/robots-rules.ts";
import { crawlSlice, type SliceEnding, type SliceTools } from "./crawl-slice.ts";

export interface FollowedHop {
  readonly url: string;
  /** The verdict of robots.txt with its rule. Null if robots.txt was unavailable, for which the result gives the reason. */
  readonly robots: RobotsVerdict | null;
  readonly crawlDelaySeconds: number | null;
  /** Time from the start of this hop to its result, including the wait for the host's pace. */
  readonly tookMs: number;
  readonly result: FetchResult;
}

export interface Followed {
  /** Empty only if `ending` explains why nothing was fetched. */
  readonly hops: readonly FollowedHop[];
  /** Why a hop was returned without a result, or null. */
  readonly ending: SliceEnding;
}

/** Maximum wait of a hop for its host's pace, such as a long Crawl-delay. */
const hopSeconds = 600;

export async function followRedirects(
  url: string,
  tools: Omit<SliceTools, "keep">,
  signal: AbortSignal,
): Promise<Followed> {
  const hops: FollowedHop[] = [];
  for (let next: string | null = url; next !== null; ) {
    const hop = await oneHop({ url: next, redirects: hops.length }, tools, signal);
    if (typeof hop === "string") return { hops, ending: hop };
    const cameBack = hops.some((earlier) => locationOf(hop) === earlier.url);
    hops.push(cameBack ? asLoop(hop) : hop);
    next = locationOf(hops.at(-1)!);
  }
  return { hops, ending: null };
}

async function oneHop(
  task: { readonly url: string; readonly redirects: number },
  tools: Omit<SliceTools, "keep">,
  signal: AbortSignal,
): Promise<FollowedHop | string> {
  const startedMs = performance.now();
  const kept: FetchResult[] = [];
  const keep = (_leaseId: string, result: FetchResult) => kept.push(result) > 0;
  const url = { ...task, etag: null, lastModified: null };
  const host = urlHost(task.url);
  const lease = { leaseId: "0", host, addresses: [], expiresInSeconds: hopSeconds, waitMs: 0, urls: [url] };
  const ending = await crawlSlice(lease, { ...tools, keep }, signal);
  const result = kept[0];
  if (result === undefined) return ending ?? "the crawl ended without a result";
  const tookMs = performance.now() - startedMs;
  return { url: task.url, ...robotsOf(task.url, tools.robots), tookMs, result };
}

/** Reads the cached robots.txt of the hop without another request. */
function robotsOf(url: string, robots: RobotsCache): Pick<FollowedHop, "robots" | "crawlDelaySeconds"> {
  const { origin, pathname, search } = new URL(url);
  const known = robots.known(origin);
  if (known?.type !== "known") return { robots: null, crawlDelaySeconds: null };
  return { robots: known.verdict(pathname + search), crawlDelaySeconds: known.crawlDelaySeconds };
}

function locationOf({ result: { outcome } }: FollowedHop): string | null {
  return outcome.type === "redirected" ? outcome.location : null;
}

function asLoop(hop: FollowedHop): FollowedHop {
  const failure = new Failure("redirect-loop", `redirected back to ${locationOf(hop)}`);
  return { ...hop, result: { ...hop.result, outcome: outcomeOfFailure(failure) } };
}
