/**
 * Results from a crawler become pages, fetches, links and frontier rows, in one transaction with the
 * acknowledged sequence. What needs thought is done here (keys, which links to follow, when to fetch
 * again); the store only writes.
 */

import { urlKeyOf } from "#core/frontier/url-key";
import type { CrawlerId, LeaseId } from "#core/ids";
import { isGone, nextFetchAt, type RecrawlSettings } from "#core/recrawl/fixed-interval";
import type { FetchResult } from "#protocol/result";
import type { AdmittedUrl, ArrivedResult, CrawlScope, ResultStore, TakenResults } from "./ports.ts";

export interface WireResult {
  readonly sequence: number;
  readonly leaseId: LeaseId;
  readonly result: FetchResult;
  readonly wireBytes: number;
}

export interface ResultBatch {
  readonly crawlerId: CrawlerId;
  readonly spoolId: string;
  readonly results: readonly WireResult[];
}

export interface TakeResultsSettings {
  readonly scope: CrawlScope;
  readonly recrawl: RecrawlSettings;
}

/** Stores a batch; resolves when it is committed. A result whose URL has no key is acknowledged and dropped. */
export async function takeResults(
  batch: ResultBatch,
  results: ResultStore,
  settings: TakeResultsSettings,
  now: Date,
): Promise<TakenResults> {
  const arrived = batch.results.map((one) => arrivedResult(one, settings, now)).filter((one) => one !== null);
  return results.take({
    crawlerId: batch.crawlerId,
    spoolId: batch.spoolId,
    results: arrived,
    scope: settings.scope,
    now,
    lastSequence: batch.results.at(-1)?.sequence ?? 0,
  });
}

function arrivedResult(one: WireResult, settings: TakeResultsSettings, now: Date): ArrivedResult | null {
  const key = urlKeyOf(one.result.url);
  if (typeof key === "string") return null;
  const { links, admit } = followed(one.result, key.url);
  return {
    sequence: one.sequence,
    leaseId: one.leaseId,
    result: one.result,
    shippedBytes: one.wireBytes,
    again: (failures) => {
      const attempt = { now, outcome: one.result.outcome, failures };
      return { at: nextFetchAt(attempt, settings.recrawl), isGone: isGone(attempt, settings.recrawl) };
    },
    admit,
    links,
    key,
  };
}

function followed(result: FetchResult, from: string): Pick<ArrivedResult, "links" | "admit"> {
  const links = new Map<string, ArrivedResult["links"][number]>();
  const admit: AdmittedUrl[] = [];
  const pageForbids = result.page?.robots.nofollow ?? false;
  const found = [...(result.page?.links ?? [])];
  if (result.outcome.type === "redirected") {
    found.push({ url: result.outcome.location, anchor: "", nofollow: false });
  }
  for (const link of found) {
    const key = urlKeyOf(link.url);
    if (typeof key === "string" || key.url === from) continue;
    // Of several links to one URL, the first that may be followed counts.
    if (links.get(key.url)?.nofollow === false || (link.nofollow && links.has(key.url))) continue;
    links.set(key.url, {
      hostHash: key.hostHash,
      urlHash: key.urlHash,
      anchor: link.anchor,
      nofollow: link.nofollow,
    });
    if (!link.nofollow && !pageForbids) admit.push({ key, depth: 1 });
  }
  return { links: [...links.values()], admit };
}
