/** Work for a crawler: a slice of one host, with what is known of the host and of its pages. */

import { z } from "zod";
import { address, digest, hostName, leaseId, milliseconds, url } from "./fields.ts";
import { hostPaceReport, maxRedirects } from "./result.ts";

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
