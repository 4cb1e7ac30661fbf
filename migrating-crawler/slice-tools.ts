/**
 * What crawling a host slice needs, wired together from the settings of the crawler's host: for the crawler
 * itself, and for whoever fetches single pages under the same rules.
 */
import type { FetchingConfig } from "./config.ts";
import type { SliceTools } from "./crawl-slice.ts";
import { RobotsCache } from "./fetch/robots.ts";
import { Governor } from "./limits/governor.ts";
import { HostGates } from "./limits/host-gate.ts";
import { Connector } from "./net/connector.ts";

export type FetchTools = Omit<SliceTools, "keep">;

export interface FetchToolsSettings {
  readonly config: FetchingConfig;
  /** The folder of the day's counters. */
  readonly home: string;
  readonly userAgent: () => string;
  /** Resolves when the processor may be used for long. */
  readonly quiet: () => Promise<void>;
}

export function fetchTools({ config, home, userAgent, quiet }: FetchToolsSettings): FetchTools {
  const { timeouts, limits, politenessFloorMs, responseTimeFactor } = config;
  const connector = new Connector(config);
  const governor = new Governor({ limits, home });
  const take = (bytes: number) => governor.takeBytes(bytes);
  return {
    connector,
    timeouts,
    governor,
    gates: new HostGates({ floorMs: politenessFloorMs, responseTimeFactor }),
    robots: new RobotsCache({ connector, timeouts, userAgent, take }),
    userAgent,
    quiet,
    now: () => new Date(),
  };
}

/** Ends what the tools keep open, and writes what they remember. */
export function closeTools({ connector, governor }: Pick<FetchTools, "connector" | "governor">): void {
  connector.close();
  governor.close();
}
