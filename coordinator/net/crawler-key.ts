/**
 * Crawler keys are random, so a single SHA-256 is enough to keep them (no salt, no stretching: there is
 * nothing to guess), and comparing hashes tells a stranger nothing about a key, however long it takes.
 */
import { createHash } from "node:crypto";

/** The form in which keys are stored and looked up: hex. */
export function hashCrawlerKey(key: string): string {
  return createHash("sha256").update(key, "utf8").digest("hex");
}
