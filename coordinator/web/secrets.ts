/**
 * Keys, tickets, invitations and tokens are random, so a plain SHA-256 suffices (no salt or stretching, because there
 * is nothing to guess), and comparing hashes needs no constant time.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Secrets } from "#core/access-types";

/** The stored form: hex. */
export function hashCrawlerKey(key: string): string {
  return createHash("sha256").update(key, "utf8").digest("hex");
}

/** Each has 256 bits from the system. */
export const randomSecrets: Secrets = {
  make(prefix = "") {
    const secret = `${prefix}${randomBytes(32).toString("base64url")}`;
    return { secret, hash: hashCrawlerKey(secret) };
  },
  hash: hashCrawlerKey,
};
