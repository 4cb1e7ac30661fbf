/** Work for a crawler: a slice of one host, with known facts about the host and its pages. */

import { z } from "zod";
import { address, digest, hostName, leaseId, milliseconds, url } from "./fields.ts";
import { hostPaceReport, maxRedirects } from "./result.ts";

export const maxLeaseUrls = 1000;

/** Maximum number of links of one page that are checked by HEAD. */
export const maxLinkTypeChecks = 100;

/** A validator, which is returned to the site as it was sent. One that no header can hold (RFC 9110 section 5.5) is dropped. */
const validator = (most: number) =>
  z
    .string()
    .regex(/^[\t\x20-\x7e\x80-\xff]*$/)
    .max(most)
    .nullable()
    .catch(null);

/** A host slice: URLs of one host that this crawler alone holds until the lease expires. */
export const lease = z.object({
  leaseId,
  host: hostName,
  addresses: z.array(address).max(64),
  expiresInSeconds: z.int().min(1).max(86_400),
  /** In how many ms the work may start at the earliest, because politeness waits move with the host. */
  waitMs: milliseconds,
  /** What any crawler's fetches revealed about the host's pace. */
  pace: hostPaceReport.optional(),
  /** How many links of each page are checked by HEAD for a readable type. If absent, none are. */
  linkTypeChecks: z.int().min(1).max(maxLinkTypeChecks).optional(),
  urls: z
    .array(
      z.object({
        url,
        etag: validator(500),
        lastModified: validator(100),
        /** SHA-256 of the indexed body in hex. A body with the same digest is reported as unchanged. */
        digest: digest.optional(),
        /** How many consecutive redirects led here. Default: 0. */
        redirects: z.int().min(0).max(maxRedirects).optional(),
      }),
    )
    .min(1)
    .max(maxLeaseUrls),
});

export type Lease = z.infer<typeof lease>;

/** A lease as it arrives. Only its id is validated before its work begins, so that an unreadable lease is returned alone. */
export const offeredLease = z.looseObject({ leaseId });

export type OfferedLease = z.infer<typeof offeredLease>;
