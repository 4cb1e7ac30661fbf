/**
 * Crawls like coordinator and crawler together in one process: everything shipped (links, redirects, sitemaps) is
 * admitted once and leased again by host. Only the frontier is a plain list; fetching, guard, robots, pace and
 * extraction are the crawler's own.
 */

import { urlHost } from "#core/ip/url-host";
import { urlKeyOf } from "#core/url-key";
import type { Lease } from "#protocol/lease";
import type { FetchResult } from "#protocol/result";
import { sliceRunner } from "./slices.ts";
import type { testConfig } from "./test-config.ts";

export interface SmallCrawl {
  readonly results: readonly FetchResult[];
  /** The last result of the seed's redirect chain, which also ends at a redirect back. */
  readonly answer: FetchResult | undefined;
  /** Why slices were returned. */
  readonly endings: readonly string[];
  /** True when nothing was left to crawl. */
  readonly isFinished: boolean;
}

export interface CrawlPlan {
  readonly seed: string;
  /** The crawl stops after this many results. */
  readonly mostResults: number;
  /** Whether to follow a link; by default all are followed. */
  readonly admits?: (url: string) => boolean;
  /** How often a failed URL or a 5xx is leased again. */
  readonly retries?: number;
  /** A host that wants to rest for longer returns its slice. */
  readonly leaseSeconds?: number;
  readonly changes?: Parameters<typeof testConfig>[0];
}

type Task = Lease["urls"][number];

export async function smallCrawl(plan: CrawlPlan): Promise<SmallCrawl> {
  const runner = sliceRunner(plan.changes);
  const known = new Set<string>();
  const waiting: Task[] = [];
  const results: FetchResult[] = [];
  const endings: string[] = [];
  const admit = (url: string, redirects = 0) => {
    const key = urlKeyOf(url);
    if (typeof key === "string" || known.has(key.url)) return;
    known.add(key.url);
    waiting.push({ url: key.url, etag: null, lastModified: null, redirects });
  };
  try {
    admit(plan.seed);
    while (waiting.length > 0 && results.length < plan.mostResults) {
      const slice = takeSlice(waiting);
      const urls = slice.map((task) => task.url);
      const lease = { host: urlHost(slice[0]!.url), urls: slice, expiresInSeconds: plan.leaseSeconds ?? 12 };
      const crawled = await runner.crawl(urls, lease);
      if (crawled.ending !== null) endings.push(crawled.ending);
      for (const result of crawled.results) {
        results.push(result);
        const task = slice.find((each) => each.url === result.url);
        for (const url of namedBy(result)) {
          if (plan.admits?.(url) ?? true) admit(url, redirectsTo(result, task));
        }
        const tries = results.filter((earlier) => earlier.url === result.url).length;
        if (task !== undefined && mayMend(result) && tries <= (plan.retries ?? 0)) waiting.push(task);
      }
    }
    return { results, endings, answer: followed(plan.seed, results), isFinished: waiting.length === 0 };
  } finally {
    runner.close();
  }
}

/** Takes up to twenty URLs of the host that has waited longest. */
function takeSlice(waiting: Task[]): Task[] {
  const host = urlHost(waiting[0]!.url);
  const slice = waiting.filter((task) => urlHost(task.url) === host).slice(0, 20);
  for (const task of slice) waiting.splice(waiting.indexOf(task), 1);
  return slice;
}

function namedBy({ outcome, page, robots }: FetchResult): string[] {
  const target = outcome.type === "redirected" ? [outcome.location] : [];
  const links = (page?.links ?? []).filter((link) => !link.nofollow).map((link) => link.url);
  return [...target, ...links, ...(robots?.sitemaps ?? []), ...(page?.feeds ?? [])];
}

function redirectsTo({ outcome }: FetchResult, task: Task | undefined): number {
  return outcome.type === "redirected" ? (task?.redirects ?? 0) + 1 : 0;
}

function mayMend({ outcome }: FetchResult): boolean {
  return outcome.type === "failed" || (outcome.type === "http-error" && outcome.status >= 500);
}

function followed(seed: string, results: readonly FetchResult[]): FetchResult | undefined {
  const seen = new Set<string>();
  let last: FetchResult | undefined;
  for (let url = new URL(seed).href; !seen.has(url); ) {
    seen.add(url);
    const result = results.findLast((each) => each.url === url);
    if (result === undefined) return last;
    last = result;
    if (result.outcome.type === "redirected") url = result.outcome.location;
  }
  return last;
}
