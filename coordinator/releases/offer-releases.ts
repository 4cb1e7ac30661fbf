/**
 * Tells crawlers of the releases that they may take. Only those that a dock runs and that speak version 3 hear of
 * it, each once a session and release; their docks fetch, verify and decide, and report what became of it.
 */
import type { CrawlerId } from "#core/ids";
import { agreeOnVersion, type CoordinatorMessage, identityVersion } from "#protocol/coordinator-messages";
import type { CrawlerHello, CrawlerMessage } from "#protocol/messages";
import type { ReleaseFleetStore, ReleaseStore } from "./release-ports.ts";
import { releaseFor } from "./staging.ts";

export interface OfferPorts {
  readonly releases: Pick<ReleaseStore, "list">;
  readonly releaseFleet: ReleaseFleetStore;
  readonly online: () => readonly CrawlerId[];
  /** False: the crawler is not connected (any more, or yet). */
  readonly send: (crawlerId: CrawlerId, message: CoordinatorMessage) => boolean;
  readonly now: () => Date;
}

export type ReleaseReport = Extract<CrawlerMessage, { type: "crawler:release-report" }>;

export class ReleaseOffers {
  readonly #ports: OfferPorts;
  /** Crawlers of this process that have a dock, and the number of the release that they heard of last. */
  readonly #sessions = new Map<CrawlerId, { heardOf: number | null }>();

  constructor(ports: OfferPorts) {
    this.#ports = ports;
  }

  /** A crawler came: kept for the fleet's list, and for the next pass. */
  async arrived(crawlerId: CrawlerId, hello: CrawlerHello): Promise<void> {
    const speaks = agreeOnVersion(hello.protocolVersions) ?? 0;
    const runs = speaks >= identityVersion ? (hello.release ?? null) : null;
    if (runs) this.#sessions.set(crawlerId, { heardOf: null });
    else this.#sessions.delete(crawlerId);
    await this.#ports.releaseFleet.arrived(crawlerId, runs);
  }

  /** False when the crawler speaks of a release that was never published here. */
  async reported(crawlerId: CrawlerId, { version, state, reason }: ReleaseReport): Promise<boolean> {
    return await this.#ports.releaseFleet.reported(crawlerId, { version, state, reason }, this.#ports.now());
  }

  /** Offers what has not been offered yet; returns to how many. */
  async pass(): Promise<number> {
    const connected = new Set(this.#ports.online());
    const waiting = [...this.#sessions].filter(([crawlerId]) => connected.has(crawlerId));
    if (waiting.length === 0) return 0;
    const [releases, docks] = await Promise.all([
      this.#ports.releases.list(),
      this.#ports.releaseFleet.docks(),
    ]);
    let offered = 0;
    for (const [crawlerId, session] of waiting) {
      const dock = docks.find((one) => one.crawlerId === crawlerId);
      const release = dock ? releaseFor(dock, { releases, docks }, this.#ports.now()) : null;
      if (!release) session.heardOf = null;
      else if (session.heardOf !== release.sequence && (await this.#offer(crawlerId, release))) {
        session.heardOf = release.sequence;
        offered += 1;
      }
    }
    return offered;
  }

  async #offer(
    crawlerId: CrawlerId,
    { version, digest }: { readonly version: string; readonly digest: string },
  ): Promise<boolean> {
    if (!this.#ports.send(crawlerId, { type: "coordinator:release", version, digest })) return false;
    await this.#ports.releaseFleet.offered(crawlerId, version, this.#ports.now());
    return true;
  }
}
