/** Fetches single URLs under all rules, like a slice of a new crawler. */

import { urlHost } from "#core/ip/url-host";
import { crawlSlice, type SliceEnding, type SliceTools } from "#crawler/crawl/crawl-slice";
import { type Followed, followRedirects } from "#crawler/crawl/follow-redirects";
import { closeTools, type FetchTools, fetchTools } from "#crawler/crawl/slice-tools";
import { type FetchResult, fetchResultSchema } from "#protocol/result";
import { testConfig } from "./test-config.ts";

export interface FetchTask {
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
  readonly digest?: string;
  readonly redirects?: number;
}

/** Validates the results by the message's schema. */
export async function fetchAll(
  tasks: readonly FetchTask[],
  changes: Parameters<typeof testConfig>[0] = {},
): Promise<{ readonly results: FetchResult[]; readonly ending: SliceEnding }> {
  const urls = tasks.map((task) => ({
    ...task,
    etag: task.etag ?? null,
    lastModified: task.lastModified ?? null,
  }));
  const host = urlHost(tasks[0]!.url);
  const lease = { leaseId: "1", host, addresses: [], expiresInSeconds: 300, waitMs: 0, urls };
  const results: FetchResult[] = [];
  const ending = await withTools(changes, (tools) =>
    crawlSlice(lease, { ...tools, ...keepIn(results) }, new AbortController().signal),
  );
  return { results, ending };
}

/** Follows redirects in this process, like `nearcrawl fetch`. */
export function followOne(url: string, changes: Parameters<typeof testConfig>[0] = {}): Promise<Followed> {
  return withTools(changes, (tools) => followRedirects(url, tools, new AbortController().signal));
}

export async function fetchOne(
  task: FetchTask,
  changes: Parameters<typeof testConfig>[0] = {},
): Promise<FetchResult> {
  return (await fetchAll([task], changes)).results[0]!;
}

async function withTools<T>(
  changes: Parameters<typeof testConfig>[0],
  work: (tools: FetchTools) => Promise<T>,
): Promise<T> {
  const config = testConfig(changes);
  const userAgent = () => "Nearcrawl/test";
  const tools = fetchTools({ config, home: config.home, userAgent, quiet: async () => {} });
  try {
    return await work(tools);
  } finally {
    closeTools(tools);
  }
}

function keepIn(results: FetchResult[]): Pick<SliceTools, "keep"> {
  return {
    keep: (_leaseId, result) => {
      results.push(fetchResultSchema.parse(result));
      return true;
    },
  };
}
