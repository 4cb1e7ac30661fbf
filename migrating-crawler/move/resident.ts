/**
 * The crawler that lives in a folder, whoever that is: begun anew in the same process when the folder's crawler has
 * become another one, or when a move has come to nothing.
 */
import { ConfigError } from "#core/errors";
import { Crawler } from "../crawler.ts";
import type { CrawlerSurroundings } from "../crawler-surroundings.ts";
import { readMembership } from "../membership/membership.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { finishMove, type Settled, settleMove } from "./settle-move.ts";

const goneWords =
  "this crawler has moved to another host of its partner, and nothing of it is left here; to crawl from this machine again, join with a new invitation";

export class Resident {
  readonly #surroundings: CrawlerSurroundings;
  #config: CrawlerConfig;
  #crawler: Crawler | null = null;
  #turn: Promise<void> = Promise.resolve();
  #isStopping = false;

  constructor(config: CrawlerConfig, surroundings: CrawlerSurroundings) {
    this.#config = config;
    this.#surroundings = surroundings;
  }

  /** Throws ConfigError or UsageError when it cannot be started. */
  async start(): Promise<void> {
    const settled = finishMove(this.#config.home);
    if (settled === "gone") throw new ConfigError([`${this.#config.home}: ${goneWords}`]);
    await this.#begin(settled);
  }

  /** Who lives here now; the last one, when nobody does any more. */
  get crawler(): Crawler {
    if (this.#crawler === null) throw new Error("the crawler was not started");
    return this.#crawler;
  }

  change(config: CrawlerConfig): void {
    this.#config = config;
    this.#crawler?.change(config);
  }

  async stop(how: "stop" | "leave"): Promise<void> {
    this.#isStopping = true;
    await this.#turn;
    await this.#crawler?.[how]();
  }

  async #begin(settled: Settled): Promise<void> {
    if (settled === "gone") {
      this.#surroundings.onRefused?.(goneWords);
      return;
    }
    const name = readMembership(this.#config.home)?.name ?? this.#config.name;
    if (settled === "became") this.#surroundings.log.info({ name }, "this host runs another crawler now");
    this.#config = { ...this.#config, name };
    const crawler: Crawler = new Crawler(this.#config, {
      ...this.#surroundings,
      onMove: (how) => this.#beginAnew(crawler, how),
    });
    this.#crawler = crawler;
    await crawler.start();
  }

  /** Once for each crawler. */
  #beginAnew(before: Crawler, how: "moved" | "failed"): void {
    this.#turn = this.#turn.then(async () => {
      if (this.#isStopping || this.#crawler !== before) return;
      await before.stop("the crawler begins anew");
      await this.#begin(how === "moved" ? settleMove(this.#config.home) : "nothing");
    });
    this.#turn = this.#turn.catch((error: unknown) => {
      const words = error instanceof Error ? error.message : String(error);
      this.#surroundings.onRefused?.(`the crawler could not begin anew after a move: ${words}`);
    });
  }
}
