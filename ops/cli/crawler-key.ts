/** Crawler keys are 256 random bits, shown once. The database has only their SHA-256. */
import { createHash, randomBytes } from "node:crypto";

export function newCrawlerKey(): { key: string; keyHash: string } {
  const key = randomBytes(32).toString("base64url");
  return { key, keyHash: createHash("sha256").update(key).digest("hex") };
}
