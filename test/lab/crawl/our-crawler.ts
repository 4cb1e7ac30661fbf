/** Our crawler as partners run it: the one-file bundle in its own process, against the real gateway. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CrawlerId } from "#core/ids";
import type { CrawlerSettings } from "#crawler/settings/config";
import { oneHelper } from "#crawler/supervisor/crawler-child";
import type { Lease } from "#protocol/lease";
import type { FetchResult } from "#protocol/result";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";
import { keyOf, type LoopbackGateway, startGateway } from "../../gateway/gateway-on-loopback.ts";
import { MeasuredProcess } from "./measured-process.ts";

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
  const isRead = page !== null && (page.text !== "" || page.robots.noindex);
  if (outcome.type === "fetched" && isRead) return null;
  // One of the real pages is a bot gate, which is also read before it is recognized.
  if (outcome.type === "failed" && outcome.code === "challenged") return null;
  return `${url} was not fetched and extracted: ${JSON.stringify(outcome)}`;
}

// * The coordinator's side of the crawl benchmark: the real gateway, which welcomes, inflates, checks and acknowledges, with a list of
// URLs to lease in place of a frontier.

/** The crawler's waiting time when there is nothing to do. */
const askAgainMs = 100;
const leaseSeconds = 3600;

export interface Work {
  /** Each host's URLs, in the order in which the hosts are leased. */
  readonly urlsOfHost: ReadonlyMap<string, readonly string[]>;
  /** The work is done when this number of results is committed. */
  readonly results: number;
  /** A fault's message ends the work. */
  readonly faultOf: (result: FetchResult) => string | null;
}

class WorkGiver {
  readonly #world: LoopbackGateway;
  #waiting: [host: string, urls: readonly string[]][] = [];
  #work: Work | null = null;
  #left = 0;
  #nextLease = 1;
  #done: (fault?: Error) => void = () => {};

  static async start(): Promise<WorkGiver> {
    let giver: WorkGiver | undefined;
    const world = await startGateway({
      zlibSync: await loadZlibSync(),
      settings: { inflatedBytesPerSecond: 1e12, heartbeatMs: 600_000 },
      handlers: {
        async onResults({ results }) {
          for (const { result } of results) giver?.take(result);
        },
        async onMessage(crawlerId, message) {
          if (message.type === "crawler:ready") giver?.hand(crawlerId, message.freeHosts);
        },
      },
    });
    giver = new WorkGiver(world);
    return giver;
  }

  constructor(world: LoopbackGateway) {
    this.#world = world;
  }

  get url(): string {
    return this.#world.url;
  }

  readonly name = "amber";
  readonly key = keyOf("amber");

  async give(work: Work): Promise<void> {
    this.#waiting = [...work.urlsOfHost];
    this.#left = work.results;
    this.#work = work;
    await new Promise<void>((resolve, reject) => {
      this.#done = (fault) => (fault === undefined ? resolve() : reject(fault));
    });
    this.#work = null;
    this.#waiting = [];
  }

  hand(crawlerId: CrawlerId, freeHosts: number): void {
    const leases = this.#waiting.splice(0, freeHosts).map(([host, urls]) => this.#lease(host, urls));
    this.#world.gateway.send(crawlerId, {
      type: "coordinator:tasks",
      leases,
      askAgainMs: leases.length > 0 ? 0 : askAgainMs,
      reason: leases.length > 0 ? "" : "nothing is left",
    });
  }

  take(result: FetchResult): void {
    if (this.#work === null) return;
    const fault = this.#work.faultOf(result);
    if (fault !== null) this.#done(new Error(fault));
    else if (--this.#left === 0) this.#done();
  }

  stop(): Promise<void> {
    return this.#world.close();
  }

  #lease(host: string, urls: readonly string[]): Lease {
    return {
      leaseId: String(this.#nextLease++),
      host,
      addresses: [],
      expiresInSeconds: leaseSeconds,
      waitMs: 0,
      urls: urls.map((url) => ({ url, etag: null, lastModified: null })),
    };
  }
}
