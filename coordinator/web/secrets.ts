/**
 * Keys, tickets, invitations and tokens are random. A plain SHA-256 therefore suffices (there is nothing to guess, so neither
 * salt nor stretching is needed), and comparing hashes needs no constant time.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Secrets } from "#core/access-types";

/** Returns the form in which a key is stored (hex). */
export function hashCrawlerKey(key: string): string {
  return createHash("sha256").update(key, "utf8").digest("hex");
}

/** Each secret is 256 bits from the system's random generator. */
export const randomSecrets: Secrets = {
  make(prefix = "") {
    const secret = `${prefix}${randomBytes(32).toString("base64url")}`;
    return { secret, hash: hashCrawlerKey(secret) };
  },
  hash: hashCrawlerKey,
};
