/** Work for a crawler: a slice of one host, with what is known of the host and of its pages. */

import { createHash } from "node:crypto";
import { z } from "zod";
import { address, digest, hostName, leaseId, milliseconds, url } from "./fields.ts";
import { mostKnownBytes } from "./known-digests.ts";
import { hostPaceReport, maxRedirects } from "./result.ts";

/** Base64 has four characters for three bytes. */
const mostKnownText = 4 * Math.ceil(mostKnownBytes / 3);

/** Most URLs in one lease. */
export const maxLeaseUrls = 1000;

/** Most links of one page that are asked for by HEAD. */
export const maxLinkTypeChecks = 100;

/** As a site sent it and gets it back; what cannot stand in a header (RFC 9110 section 5.5) counts as none. */
const validator = (most: number) =>
  z
    .string()
    .regex(/^[\t\x20-\x7e\x80-\xff]*$/)
    .max(most)
    .nullable()
    .catch(null);

/** A host slice: URLs of one host, for this crawler alone until the lease runs out. */
export const lease = z.object({
  leaseId,
  host: hostName,
  /** The host's addresses as the coordinator resolved them; the crawler resolves again for itself. */
  addresses: z.array(address).max(64),
  expiresInSeconds: z.int().min(1).max(86_400),
  /** Not before this many ms from now: politeness that travels with the host. */
  waitMs: milliseconds,
  /** What earlier fetches say of the host's pace, by whichever crawler; absent: nothing. */
  pace: hostPaceReport.optional(),
  /** Of each page so many links are asked for by HEAD, whether they can be read; absent: none. */
  linkTypeChecks: z.int().min(1).max(maxLinkTypeChecks).optional(),
  /**
   * Digests of pages that the index has of the channel, as protocol/known-digests packs them: the text of a page with
   * one of them need not travel. Absent: every text does.
   */
  known: z.base64().max(mostKnownText).optional(),
  /**
   * Links to other sites that the coordinator knows of the channel, as protocol/known-links packs them: one of them may be
   * told by its name, on any page of the host from now on (`keptLinkSets`). Absent: it was told before, or nothing is.
   */
  knownLinks: z.base64().max(mostKnownText).optional(),
  urls: z
    .array(
      z.object({
        url,
        etag: validator(500),
        lastModified: validator(100),
        /** SHA-256 of the body that the index has, hex: the same one again is reported as unchanged. */
        digest: digest.optional(),
        /** How many redirects in a row led here; absent: none. */
        redirects: z.int().min(0).max(maxRedirects).optional(),
      }),
    )
    .min(1)
    .max(maxLeaseUrls),
});

export type Lease = z.infer<typeof lease>;

/**
 * A lease as it comes to a crawler: nothing but its name is looked at before the crawler begins it, so that one that it
 * has no place for, or cannot read, goes back alone.
 */
export const offeredLease = z.looseObject({ leaseId });

export type OfferedLease = z.infer<typeof offeredLease>;

// Links to other sites that a lease's channel is known to have (SARSS section 2.1: "the digests of discovered inter-site
// URLs"). The set that goes along is made as that of known texts (known-digests.ts), of digests of the URLs' hashes; a
// link in it stands in the page's list as before, with its name in place of its URL:
//
// k:Zm9v     24 bits of the URL's SHA-256, base64url
//
// A name says which of the channel's known links is meant, and nothing else: those that share one are not in the set. A
// link by its name is a line in a connection's memory (packed/link-history.ts) like any other.

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
