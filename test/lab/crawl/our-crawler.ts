/** Our crawler as partners run it: the one-file bundle in its own process, against the real gateway. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CrawlerSettings } from "#crawler/settings/config";
import { oneHelper } from "#crawler/supervisor/crawler-child";
import type { FetchResult } from "#protocol/result";
import { MeasuredProcess } from "./measured-process.ts";
import { WorkGiver } from "./work-giver.ts";

export interface OurCrawler {
  readonly process: MeasuredProcess;
  readonly giver: WorkGiver;
  /** Gives the number of pages; throws when one is not fetched. */
  crawl(urls: readonly string[]): Promise<number>;
  stop(): Promise<void>;
}

/** No pause between requests by default: the sites are ours, and CPU is measured. */
export async function startOurCrawler(
  bundle: string,
  scratch: string,
  changes: Partial<CrawlerSettings> = {},
): Promise<OurCrawler> {
  const giver = await WorkGiver.start();
  const home = mkdtempSync(join(scratch, "home-"));
  const settings: CrawlerSettings = {
    coordinatorUrl: giver.url,
    key: giver.key,
    name: giver.name,
    home,
    allowRanges: ["127.0.0.0/8"],
    politenessFloorMs: 0,
    responseTimeFactor: 0,
    ...changes,
  };
  const file = join(home, "settings.json");
  writeFileSync(file, JSON.stringify(settings));
  const process = new MeasuredProcess(bundle, { args: [file], execArgv: [oneHelper] });
  const stop = async () => {
    await process.stop();
    await giver.stop();
  };
  const crawl = async (urls: readonly string[]) => {
    await giver.give({ urlsOfHost: byHost(urls), results: urls.length, faultOf: notFetched });
    return urls.length;
  };
  return { process, giver, crawl, stop };
}

function byHost(urls: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const urlsOfHost = new Map<string, string[]>();
  for (const url of urls) {
    const { hostname } = new URL(url);
    const known = urlsOfHost.get(hostname);
    if (known) known.push(url);
    else urlsOfHost.set(hostname, [url]);
  }
  return urlsOfHost;
}

function notFetched({ url, outcome, page }: FetchResult): string | null {
  // Some real pages ask not to be indexed.
  const isRead = page !== null && (page.lexemes !== "" || page.robots.noindex);
  if (outcome.type === "fetched" && isRead) return null;
  // One of the real pages is a bot gate, which is also read before it is recognized.
  if (outcome.type === "failed" && outcome.code === "challenged") return null;
  return `${url} was not fetched and extracted: ${JSON.stringify(outcome)}`;
}
