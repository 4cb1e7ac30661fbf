/** Settings for crawlers under test: loopback is allowed, waits are short, and home is a new folder. */
import { type CrawlerConfig, type CrawlerSettings, crawlerConfig } from "#crawler/settings/config";
import { temporaryFolder } from "../../support/temporary-folder.ts";

export function testConfig(changes: Partial<CrawlerSettings> = {}): CrawlerConfig {
  return crawlerConfig({
    coordinatorUrl: "ws://127.0.0.1:9/crawler",
    key: "the-secret-key-of-amber",
    name: "amber",
    home: temporaryFolder("nearcrawl-crawler-"),
    allowRanges: ["127.0.0.0/8"],
    politenessFloorMs: 0,
    responseTimeFactor: 0,
    timeouts: { connectMs: 2000, firstByteMs: 2000, idleMs: 2000, totalMs: 5000 },
    ...changes,
  });
}
