/**
 * Puts the host's settings into force while the crawler runs, and keeps the link within the bytes that are left. The
 * coordinator learns of changed limits by a new hello: the link is renewed, with all results and leases kept.
 */

import type { CrawlerLog } from "../core/log.ts";
import type { Governor } from "../limits/governor.ts";
import type { Carrier } from "../link/carrier.ts";
import type { CoordinatorLink } from "../link/coordinator-link.ts";
import type { Connector } from "../net/connector.ts";
import type { Prober } from "../probe/prober.ts";
import { changedConfig } from "./changed-config.ts";
import type { CrawlerConfig } from "./config.ts";

const lookEveryMs = 2000;

export interface LiveSettingsParts {
  readonly governor: Governor;
  readonly connector: Connector;
  readonly prober: Prober;
  readonly link: CoordinatorLink;
  readonly carrier: Carrier;
  readonly log: CrawlerLog;
}

export class LiveSettings {
  #config: CrawlerConfig;
  readonly #parts: LiveSettingsParts;
  readonly #timer: NodeJS.Timeout;

  constructor(config: CrawlerConfig, parts: LiveSettingsParts) {
    this.#config = config;
    this.#parts = parts;
    this.#timer = setInterval(() => this.#look(), lookEveryMs).unref();
  }

  get config(): CrawlerConfig {
    return this.#config;
  }

  /** Takes over what can be changed without a restart, and says in the log what cannot. */
  change(next: CrawlerConfig): void {
    const { governor, connector, prober, link, log } = this.#parts;
    const { config, changed, needRestart, isTold } = changedConfig(this.#config, next);
    this.#config = config;
    governor.apply(config.limits);
    connector.apply(config);
    prober.apply(allowedProbes(config));
    if (changed.length > 0) log.info({ settings: changed }, "changed settings are in force");
    if (needRestart.length > 0) {
      log.warn({ settings: needRestart }, "changed settings wait for the crawler's next start");
    }
    if (isTold) link.renew("the host has changed its settings");
    this.#look();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Results that had to wait go when a new day or month begins. */
  #look(): void {
    const { governor, link, carrier } = this.#parts;
    if (governor.mayLink()) link.release();
    else link.hold("the host's limit on bytes is reached");
    carrier.pump();
  }
}

/** How the host lets the way to sites be measured. */
export function allowedProbes({ probeMethods, limits }: CrawlerConfig): CrawlerConfig["probeMethods"] {
  return probeMethods.filter((method) => method !== "icmp" || limits.icmp);
}
