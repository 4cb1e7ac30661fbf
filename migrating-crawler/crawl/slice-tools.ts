/**
 * Wires up what crawling a slice needs from the crawler's settings. Both the crawler and the fetching of single pages use it,
 * so the same rules apply.
 */

import { join } from "node:path";
import { type CrawlerLog, quietLog } from "../core/log.ts";
import { RobotsCache } from "../fetch/robots.ts";
import type { SignRequest } from "../fetch/sign-request.ts";
import { TdmFiles } from "../fetch/tdm-files.ts";
import { Governor } from "../limits/governor.ts";
import { HostGates } from "../limits/host-gate.ts";
import type { KeptSettings } from "../limits/state-file.ts";
import { Connector, WireMeter } from "../net/connector.ts";
import type { FetchingConfig } from "../settings/config.ts";
import { SiteMemory } from "../traps/site-memory.ts";
import type { SliceTools } from "./crawl-slice.ts";

export type FetchTools = Omit<SliceTools, "keep"> & { readonly meter: WireMeter };

interface FetchToolsSettings {
  readonly config: FetchingConfig;
  /** The folder for counters and for what is known about hosts and their robots.txt. */
  readonly home: string;
  readonly userAgent: () => string;
  readonly sign?: SignRequest;
  /** Resolves when long computations may run. */
  readonly quiet: () => Promise<void>;
  readonly log?: CrawlerLog;
  /** How many bytes of results are waiting on disk. */
  readonly spoolBytes?: () => number;
  /** How many bytes are queued for the coordinator. */
  readonly queuedBytes?: () => number;
}

export function fetchTools(settings: FetchToolsSettings): FetchTools {
  const { config, home, userAgent, sign, log, spoolBytes = () => 0, queuedBytes = () => 0 } = settings;
  const { timeouts, limits, responseTimeFactor, requestsPerAddress } = config;
  const { politenessFloorMs: floorMs, politenessFastestMs, tdmFileFromUrls: fromUrls } = config;
  const kept: KeptSettings = { home, warn: (fields, words) => (log ?? quietLog).warn(fields, words) };
  const meter = new WireMeter();
  const governor = new Governor({ limits, kept, meter, spoolBytes, queuedBytes });
  const connector = new Connector(config, { meter, slots: governor.slots });
  governor.onSpent = (reason) => connector.cut(reason);
  const take = (bytes: number) => governor.takeBytes(bytes);
  return {
    meter,
    connector,
    timeouts,
    governor,
    gates: new HostGates({
      ...{ floorMs, fastestMs: politenessFastestMs ?? floorMs },
      ...{ responseTimeFactor, requestsPerAddress, kept },
    }),
    robots: new RobotsCache({ connector, timeouts, userAgent, sign, take, kept }),
    tdm: new TdmFiles({ fromUrls, userAgent, take, kept: { ...kept, home: join(home, "crawler") } }),
    memory: new SiteMemory(),
    userAgent,
    sign,
    quiet: async () => {
      await settings.quiet();
      await governor.cpuTurn();
    },
    now: () => new Date(),
  };
}

/** Closes the tools and saves what they have learned. */
export function closeTools(
  tools: Pick<FetchTools, "connector" | "governor" | "gates" | "robots" | "tdm">,
): void {
  tools.connector.close();
  tools.governor.close();
  tools.gates.close();
  tools.robots.close();
  tools.tdm.close();
}
