/** The whole fleet: the crawlers connected here, and those of other coordinators on this database, which relay requests. */
import type { CrawlerId } from "#core/ids";
import type { Fleet } from "../../place/crawlers/crawler.ts";
import type { CrawlerGateway } from "./gateway.ts";

type Line = Pick<
  CrawlerGateway,
  "closed" | "online" | "isConnected" | "isCrowded" | "probe" | "send" | "refuse" | "forEachConnected"
>;

/** The crawlers that are connected to other coordinators. */
interface Elsewhere {
  online(): readonly CrawlerId[];
  probe: Fleet["probe"];
}

export class WholeFleet implements Fleet {
  readonly #gateway: Line;
  #elsewhere: Elsewhere | null = null;

  constructor(gateway: Line) {
    this.#gateway = gateway;
  }

  join(elsewhere: Elsewhere): void {
    this.#elsewhere = elsewhere;
  }

  /** Why no crawlers are served here at present, or null. */
  get closed(): string | null {
    return this.#gateway.closed?.reason ?? null;
  }

  online(): readonly CrawlerId[] {
    const here = this.here();
    const elsewhere = this.#elsewhere?.online() ?? [];
    if (elsewhere.length === 0) return here;
    return [...new Set([...here, ...elsewhere])];
  }

  /** Returns the crawlers that are connected to this coordinator. Only it can send them messages. */
  here(): readonly CrawlerId[] {
    return this.#gateway.online();
  }

  /** Runs the work for each crawler connected here, which neither arrives nor leaves meanwhile. */
  async forEachHere(work: (crawlerId: CrawlerId) => Promise<void>): Promise<void> {
    await this.#gateway.forEachConnected(work);
  }

  /** Whether more crawlers arrive at this coordinator than it admits at once. */
  isCrowded(): boolean {
    return this.#gateway.isCrowded;
  }

  isHere(crawlerId: CrawlerId): boolean {
    return this.#gateway.isConnected(crawlerId);
  }

  async probe(...asked: Parameters<Fleet["probe"]>): ReturnType<Fleet["probe"]> {
    const [crawlerId] = asked;
    if (this.#elsewhere === null || this.isHere(crawlerId)) return await this.#gateway.probe(...asked);
    return await this.#elsewhere.probe(...asked);
  }

  /** Returns false if the crawler is not connected here. */
  send(...sent: Parameters<Line["send"]>): boolean {
    return this.#gateway.send(...sent);
  }

  refuse(...refused: Parameters<Line["refuse"]>): boolean {
    return this.#gateway.refuse(...refused);
  }
}
