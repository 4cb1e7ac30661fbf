/**
 * The entry point of the migrating crawler: `startCrawler` for programs, or the process if this file or the bundle
 * (bundle-entry.ts) is run: `node crawler-bundle.mjs settings.json`.
 */
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import { softwareVersion } from "#protocol/software-version";
import { quietLog } from "./core/log.ts";
import { runCrawlerProcess } from "./crawler-process.ts";
import type { CrawlerSurroundings } from "./link/supervisor-line.ts";
import { Resident } from "./resident-crawler.ts";
import type { CrawlerConfig } from "./settings/config.ts";

/** Resolves when the crawler has begun to connect. Throws ConfigError or UsageError. */
export async function startCrawler(
  config: CrawlerConfig,
  surroundings: Partial<CrawlerSurroundings> = {},
): Promise<Resident> {
  const resident = new Resident(config, { log: quietLog, softwareVersion, ...surroundings });
  await resident.start();
  return resident;
}

if (isMainThread && isEntry(process.argv[1])) {
  const settings = process.argv[2] ?? process.env.NEARCRAWL_CRAWLER_CONFIG;
  await runCrawlerProcess({ settings, isSupervised: process.argv[3] === "--dock", start: startCrawler });
}

function isEntry(script: string | undefined): boolean {
  try {
    return script !== undefined && realpathSync(script) === fileURLToPath(import.meta.url);
  } catch {
    return false;
  }
}
