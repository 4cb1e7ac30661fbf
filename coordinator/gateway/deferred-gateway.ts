/** The line to the crawlers for rooms that are opened before the gateway is. */
import type { CrawlerId } from "#core/ids";
import type { Fleet } from "../crawlers/crawler.ts";
import type { CrawlerGateway } from "./gateway.ts";

type Line = Pick<CrawlerGateway, "online" | "probe" | "send" | "refuse">;

export class FleetLine implements Line {
  #gateway: Line | null = null;

  open(gateway: Line): void {
    this.#gateway = gateway;
  }

  online(): readonly CrawlerId[] {
    return this.#gateway?.online() ?? [];
  }

  async probe(...asked: Parameters<Fleet["probe"]>): ReturnType<Fleet["probe"]> {
    if (this.#gateway === null) throw new Error("the gateway is not open yet: nobody can be asked to probe");
    return await this.#gateway.probe(...asked);
  }

  /** False: it is not connected. */
  send(...sent: Parameters<Line["send"]>): boolean {
    return this.#gateway?.send(...sent) ?? false;
  }

  /** False: it was not connected. */
  refuse(...refused: Parameters<Line["refuse"]>): boolean {
    return this.#gateway?.refuse(...refused) ?? false;
  }
}
