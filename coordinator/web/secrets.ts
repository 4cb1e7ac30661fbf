/**
 * Keys, tickets, invitations and tokens are random, so a single SHA-256 is enough to keep them (no salt, no
 * stretching: there is nothing to guess), and comparing hashes tells a stranger nothing about one, however long it
 * takes.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Secrets } from "#core/access-types";

/** The form in which they are stored and looked up: hex. */
export function hashCrawlerKey(key: string): string {
  return createHash("sha256").update(key, "utf8").digest("hex");
}

/** 256 bits from the system each. */
export const randomSecrets: Secrets = {
  make(prefix = "") {
    const secret = `${prefix}${randomBytes(32).toString("base64url")}`;
    return { secret, hash: hashCrawlerKey(secret) };
  },
  hash: hashCrawlerKey,
};
