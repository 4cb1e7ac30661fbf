/**
 * What crawling a host slice needs, wired together from the settings of the crawler's host: for the crawler
 * itself, and for whoever fetches single pages under the same rules.
 */
import type { FetchingConfig } from "./config.ts";
import type { SliceTools } from "./crawl-slice.ts";
import { RobotsCache } from "./fetch/robots.ts";
import type { SignRequest } from "./fetch/sign-request.ts";
import { Governor } from "./limits/governor.ts";
import { HostGates } from "./limits/host-gate.ts";
import type { KeptSettings } from "./limits/kept-file.ts";
import { type CrawlerLog, quietLog } from "./log.ts";
import { Connector } from "./net/connector.ts";
import { SiteMemory } from "./traps/site-memory.ts";

export type FetchTools = Omit<SliceTools, "keep">;

export interface FetchToolsSettings {
  readonly config: FetchingConfig;
  /** The folder of the day's counters, and of what is known of hosts and their robots.txt. */
  readonly home: string;
  readonly userAgent: () => string;
  readonly sign?: SignRequest;
  /** Resolves when the processor may be used for long. */
  readonly quiet: () => Promise<void>;
  readonly log?: CrawlerLog;
}

export function fetchTools({ config, home, userAgent, sign, quiet, log }: FetchToolsSettings): FetchTools {
  const { timeouts, limits, politenessFloorMs, responseTimeFactor, requestsPerAddress } = config;
  const connector = new Connector(config);
  const kept: KeptSettings = { home, warn: (fields, words) => (log ?? quietLog).warn(fields, words) };
  const governor = new Governor({ limits, kept });
  const take = (bytes: number) => governor.takeBytes(bytes);
  return {
    connector,
    timeouts,
    governor,
    gates: new HostGates({ floorMs: politenessFloorMs, responseTimeFactor, requestsPerAddress, kept }),
    robots: new RobotsCache({ connector, timeouts, userAgent, sign, take, kept }),
    memory: new SiteMemory(),
    userAgent,
    sign,
    quiet,
    now: () => new Date(),
  };
}

/** Ends what the tools keep open, and writes what they remember. */
export function closeTools(tools: Pick<FetchTools, "connector" | "governor" | "gates" | "robots">): void {
  tools.connector.close();
  tools.governor.close();
  tools.gates.close();
  tools.robots.close();
}
