/** Fetches single URLs under all rules, as a slice of a fresh crawler would, and returns the results. */
import type { CrawlerConfig } from "#crawler/config";
import { crawlSlice, type SliceEnding } from "#crawler/crawl-slice";
import { RobotsCache } from "#crawler/fetch/robots";
import { Governor } from "#crawler/limits/governor";
import { HostGates } from "#crawler/limits/host-gate";
import { Connector } from "#crawler/net/connector";
import { type FetchResult, fetchResultSchema } from "#protocol/result";
import { testConfig } from "./test-config.ts";

export interface FetchTask {
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
}

/** The results have passed the message's schema. */
export async function fetchAll(
  tasks: readonly FetchTask[],
  changes: Parameters<typeof testConfig>[0] = {},
): Promise<{ readonly results: FetchResult[]; readonly ending: SliceEnding }> {
  const config = testConfig(changes);
  const connector = new Connector(config);
  const governor = new Governor({ limits: config.limits, home: config.home });
  const results: FetchResult[] = [];
  const urls = tasks.map((task) => ({
    url: task.url,
    etag: task.etag ?? null,
    lastModified: task.lastModified ?? null,
  }));
  const host = new URL(tasks[0]!.url).hostname;
  const lease = { leaseId: "1", host, addresses: [], expiresInSeconds: 300, waitMs: 0, urls };
  try {
    const ending = await crawlSlice(
      lease,
      toolsOf(config, connector, governor, results),
      new AbortController().signal,
    );
    return { results, ending };
  } finally {
    connector.close();
    governor.close();
  }
}

export async function fetchOne(
  task: FetchTask,
  changes: Parameters<typeof testConfig>[0] = {},
): Promise<FetchResult> {
  return (await fetchAll([task], changes)).results[0]!;
}

function toolsOf(config: CrawlerConfig, connector: Connector, governor: Governor, results: FetchResult[]) {
  const { timeouts } = config;
  const userAgent = () => "Nearcrawl/test";
  const take = (bytes: number) => governor.takeBytes(bytes);
  return {
    connector,
    timeouts,
    governor,
    gates: new HostGates({
      floorMs: config.politenessFloorMs,
      responseTimeFactor: config.responseTimeFactor,
    }),
    robots: new RobotsCache({ connector, timeouts, userAgent, take }),
    userAgent,
    quiet: async () => {},
    keep: (_leaseId: string, result: FetchResult) => {
      results.push(fetchResultSchema.parse(result));
      return true;
    },
    now: () => new Date(),
  };
}
