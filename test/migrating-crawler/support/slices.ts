/** Crawls host slices with one crawler's tools against real sites on loopback (`*.localhost` is 127.0.0.1). */

import { urlHost } from "#core/ip/url-host";
import { crawlSlice, type SliceEnding, type SliceTools } from "#crawler/crawl/crawl-slice";
import { closeTools, type FetchTools, fetchTools } from "#crawler/crawl/slice-tools";
import type { Lease } from "#protocol/lease";
import { type FetchResult, fetchResultSchema } from "#protocol/result";
import { atEnd } from "../../support/at-end.ts";
import { testConfig } from "./test-config.ts";

export interface SliceRunner {
  readonly tools: FetchTools;
  /** The URLs must belong to one host and form one lease. Validates the results by the message's schema. */
  crawl(
    urls: readonly string[],
    changes?: Partial<Lease>,
    tools?: Partial<SliceTools>,
  ): Promise<CrawledSlice>;
  close(): void;
}

export interface CrawledSlice {
  readonly results: FetchResult[];
  readonly ending: SliceEnding;
}

export function sliceRunner(
  changes: Parameters<typeof testConfig>[0] = {},
  signal: AbortSignal = new AbortController().signal,
): SliceRunner {
  const config = testConfig(changes);
  const userAgent = () => "Nearcrawl/test";
  const tools = fetchTools({ config, home: config.home, userAgent, quiet: async () => {} });
  atEnd(() => closeTools(tools));
  return {
    tools,
    async crawl(urls, leaseChanges = {}, ownTools = {}) {
      const results: FetchResult[] = [];
      const keep = (_leaseId: string, result: FetchResult) =>
        results.push(fetchResultSchema.parse(result)) > 0;
      const lease: Lease = {
        leaseId: "1",
        host: urlHost(urls[0]!),
        addresses: [],
        expiresInSeconds: 300,
        waitMs: 0,
        urls: urls.map((url) => ({ url, etag: null, lastModified: null })),
        ...leaseChanges,
      };
      const ending = await crawlSlice(lease, { ...tools, ...ownTools, keep }, signal);
      return { results, ending };
    },
    close: () => closeTools(tools),
  };
}
