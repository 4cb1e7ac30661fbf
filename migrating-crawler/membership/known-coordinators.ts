/**
 * Stores other coordinators that one announced (`crawler/coordinators.json` in the home), so that a crawler can start
 * while its first coordinator is away. Nothing else depends on the file, so it may be unreadable or unwritable.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { mostCoordinators } from "#protocol/coordinator-messages";
import { isCoordinatorUrl } from "#protocol/invitation";
import type { CrawlerLog } from "../core/log.ts";
import { readPrivateJson, writePrivateJson } from "../core/private-file.ts";

const schema = z.object({
  urls: z.array(z.string().max(1000).refine(isCoordinatorUrl)).max(mostCoordinators),
});

/** Supervisors make this folder writable for any release, including releases older than this file. */
const fileIn = (home: string) => join(home, "crawler", "coordinators.json");

export function readKnownCoordinators(home: string, log: CrawlerLog): readonly string[] {
  try {
    return readPrivateJson(fileIn(home), schema, "It can be removed.")?.urls ?? [];
  } catch (error) {
    log.warn({ file: fileIn(home), error }, "the addresses of other coordinators cannot be read");
    return [];
  }
}

export function keepKnownCoordinators(home: string, urls: readonly string[], log: CrawlerLog): void {
  try {
    mkdirSync(dirname(fileIn(home)), { recursive: true, mode: 0o700 });
    writePrivateJson(fileIn(home), { urls });
  } catch (error) {
    log.warn({ file: fileIn(home), error }, "the addresses of other coordinators cannot be kept");
  }
}
