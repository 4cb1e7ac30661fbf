/**
 * Stores in `membership.json` which coordinator this crawler belongs to, how its certificate is pinned, and the crawler's name
 * and key. `join` writes the file first, and the running crawler updates it with each new ticket and key.
 */

import { join } from "node:path";
import { z } from "zod";
import { ticket } from "#protocol/identity";
import {
  certificatePin,
  crawlerName,
  isCoordinatorUrl,
  releaseKeys,
  releaseThreshold,
} from "#protocol/invitation";
import { readPrivateJson, writePrivateJson } from "./private-file.ts";

const membershipSchema = z.object({
  coordinatorUrl: z.string().max(1000).refine(isCoordinatorUrl, { error: "is not a coordinator's URL" }),
  name: crawlerName,
  /** SHA-256 of the coordinator's SubjectPublicKeyInfo in base64url. Null trusts the system's certificate authorities. */
  certificatePin: certificatePin.nullable(),
  /** Raw Ed25519 public keys in base64url. The first ones come with the invitation. */
  releaseKeys,
  releaseThreshold,
  /** The invitation's secret (`inv_…`) until the coordinator issues a key. */
  key: z.string().min(16).max(200),
  /** The ticket of the last welcome, or null before the first one. */
  ticket: ticket.nullable(),
});

export type Membership = Readonly<z.infer<typeof membershipSchema>>;

export const membershipFile = (home: string) => join(home, "membership.json");

/** Returns null if the folder belongs to no coordinator. Throws a ConfigError if the file is damaged. */
export function readMembership(home: string): Membership | null {
  return readPrivateJson(
    membershipFile(home),
    membershipSchema,
    "Put it back from a backup; without one, ask the operator for a new invitation, remove this file and join again.",
  );
}

/** Returns once the data is on disk. A crash leaves either the old file or the new one. */
export function writeMembership(home: string, membership: Membership): void {
  writePrivateJson(membershipFile(home), membershipSchema.parse(membership));
}

export function isJoining({ key }: Membership): boolean {
  return key.startsWith("inv_");
}
