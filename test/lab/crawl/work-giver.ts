/**
 * The coordinator's side of the crawl benchmark: the real gateway, which welcomes, inflates, checks and acknowledges, with a list of
 * URLs to lease in place of a frontier.
 */
import type { CrawlerId } from "#core/ids";
import type { Lease } from "#protocol/lease";
import type { FetchResult } from "#protocol/result";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";
import { keyOf, type LoopbackGateway, startGateway } from "../../gateway/gateway-on-loopback.ts";

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

export class WorkGiver {
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
