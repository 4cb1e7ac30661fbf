/**
 * Links to other sites that a lease's channel is known to have (SARSS section 2.1: "the digests of discovered inter-site
 * URLs"). The set that goes along is made as that of known texts (known-digests.ts), of digests of the URLs' hashes; a
 * link in it stands in the page's list as before, with its name in place of its URL:
 *
 *   k:Zm9v     24 bits of the URL's SHA-256, base64url
 *
 * A name says which of the channel's known links is meant, and nothing else: those that share one are not in the set. A
 * link by its name is a line in a connection's memory (packed/link-history.ts) like any other.
 */
import { createHash } from "node:crypto";

/** A crawler keeps the sets of so many hosts, the latest, and each for so long: it is told them once in a connection. */
export const keptLinkSets = 64;
export const keptLinkSetsMs: number = 12 * 3_600_000;

/** The first 64 bits of SHA-256 of a canonical URL, hex: what the frontier knows it by. */
export function linkHashOf(url: string): string {
  return createHash("sha256").update(url).digest("hex").slice(0, 16);
}

/** The same from the frontier's own form, a signed 64-bit number in decimal. */
export function linkHashOfNumber(hash: string): string {
  return BigInt.asUintN(64, BigInt(hash)).toString(16).padStart(16, "0");
}

/** What stands for the link in a set of known digests: all places of it differ, as far as 64 bits can. */
export function linkDigestOf(linkHash: string): string {
  return createHash("sha256").update(linkHash).digest("hex");
}

const nameBits = 24;

export function linkNameOf(linkHash: string): string {
  return `k:${Buffer.from(linkHash.slice(0, nameBits / 4), "hex").toString("base64url")}`;
}

/** No URL that a crawler ships is such a text: they begin with http. */
export function isLinkName(text: string): boolean {
  return /^k:[A-Za-z0-9_-]{4}$/.test(text);
}

/** The 24 bits of a name as a number. */
export function linkNameBits(name: string): number {
  return Buffer.from(name.slice(2), "base64url").readUIntBE(0, nameBits / 8);
}
