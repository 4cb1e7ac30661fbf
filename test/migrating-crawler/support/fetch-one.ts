/** Fetches single URLs under all rules, like a slice of a new crawler. */
import { type Followed, followRedirects } from "#crawler/crawl/follow-redirects";
import type { FetchResult } from "#protocol/result";
import { type CrawledSlice, sliceRunner } from "./slices.ts";
import type { testConfig } from "./test-config.ts";

export interface FetchTask {
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
  readonly digest?: string;
  readonly redirects?: number;
}

type Changes = Parameters<typeof testConfig>[0];

export async function fetchAll(tasks: readonly FetchTask[], changes: Changes = {}): Promise<CrawledSlice> {
  const runner = sliceRunner(changes);
  const urls = tasks.map((task) => ({ etag: null, lastModified: null, ...task }));
  const crawled = runner.crawl(
    tasks.map(({ url }) => url),
    { urls },
  );
  return await crawled.finally(runner.close);
}

export async function fetchOne(task: FetchTask, changes: Changes = {}): Promise<FetchResult> {
  return (await fetchAll([task], changes)).results[0]!;
}

/** Follows redirects in this process, like `nearcrawl fetch`. */
export async function followOne(url: string, changes: Changes = {}): Promise<Followed> {
  const runner = sliceRunner(changes);
  return await followRedirects(url, runner.tools, new AbortController().signal).finally(runner.close);
}
