/**
 * Applies settings while the crawler runs and keeps the link within the remaining bytes. A new hello tells the coordinator
 * about changed limits. Results and leases survive the reconnect.
 */
import type { CrawlerLog } from "./core/log.ts";
import type { Governor } from "./limits/governor.ts";
import type { Carrier } from "./link/carrier.ts";
import type { CoordinatorLink } from "./link/coordinator-link.ts";
import type { Connector } from "./net/connector.ts";
import type { Prober } from "./probe/prober.ts";
import type { CrawlerConfig } from "./settings/config.ts";

const lookEveryMs = 2000;

interface LiveSettingsParts {
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
    if (isTold) link.renew({ code: "new-settings", reason: "the host has changed its settings" });
    this.#look();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Delayed results are sent when a new day or month begins. */
  #look(): void {
    const { governor, link, carrier } = this.#parts;
    if (governor.mayLink()) link.release();
    else link.hold({ code: "out-of-bytes", reason: "the host's limit on bytes is reached" });
    carrier.pump();
  }
}

export function allowedProbes({ probeMethods, limits }: CrawlerConfig): CrawlerConfig["probeMethods"] {
  return probeMethods.filter((method) => method !== "icmp" || limits.icmp);
}

// Decides which settings can be applied while the crawler runs. Pure functions.

const changeable = [
  "limits",
  "allowRanges",
  "denyRanges",
  "denyDomains",
  "domainSets",
  "probeMethods",
  "fetched",
] as const;

const told = ["denyRanges", "denyDomains", "domainSets", "probeMethods"] as const;

/** The coordinator changes the key while the crawler runs, so the crawler already has the newest one. */
const notTheHosts: ReadonlySet<string> = new Set(["key"]);

interface ChangedConfig {
  readonly config: CrawlerConfig;
  readonly changed: readonly string[];
  readonly needRestart: readonly string[];
  readonly isTold: boolean;
}

export function changedConfig(now: CrawlerConfig, next: CrawlerConfig): ChangedConfig {
  const { extractionThreads } = now.limits;
  const taken = Object.fromEntries(changeable.map((name) => [name, next[name]]));
  const config = { ...now, ...taken, limits: { ...next.limits, extractionThreads } };
  const wanted = changedNames(now, next).filter((name) => !notTheHosts.has(name));
  const inForce = new Set(changedNames(now, config));
  return {
    config,
    changed: wanted.filter((name) => inForce.has(name)),
    needRestart: wanted.filter((name) => !inForce.has(name)),
    isTold: told.some((name) => inForce.has(name)) || [...inForce].some((name) => name.startsWith("limits.")),
  };
}

function changedNames(one: CrawlerConfig, other: CrawlerConfig): string[] {
  const { limits: oneLimits, ...oneOthers } = one;
  const { limits: otherLimits, ...others } = other;
  const limits = differing(oneLimits, otherLimits).map((name) => `limits.${name}`);
  return [...differing(oneOthers, others), ...limits];
}

function differing<Values extends object>(one: Values, other: Values): string[] {
  const names = Object.keys(one) as (keyof Values & string)[];
  return names.filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));
}
