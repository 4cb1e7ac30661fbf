/**
 * To whom this crawler belongs, as `membership.json` in its home has it: which coordinator, pinned how, under
 * which name and with which key. Written by `join`, then by the running crawler for each new ticket and key.
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
  /** SHA-256 of the coordinator's SubjectPublicKeyInfo, base64url; null: the system's authorities decide. */
  certificatePin: certificatePin.nullable(),
  /** Raw Ed25519 public keys in base64url; the first ones came with the invitation. */
  releaseKeys,
  releaseThreshold,
  /** The invitation's secret (`inv_…`) until the coordinator has given a key. */
  key: z.string().min(16).max(200),
  /** Of the last welcome; null before the first. */
  ticket: ticket.nullable(),
});

export type Membership = Readonly<z.infer<typeof membershipSchema>>;

export const membershipFile = (home: string) => join(home, "membership.json");

/** Null when this folder belongs to no coordinator. Throws a ConfigError when the file is damaged. */
export function readMembership(home: string): Membership | null {
  return readPrivateJson(
    membershipFile(home),
    membershipSchema,
    "Put it back from a backup; without one, ask the operator for a new invitation, remove this file and join again.",
  );
}

/** On the disk when this returns; a crash leaves the one before or this one. */
export function writeMembership(home: string, membership: Membership): void {
  writePrivateJson(membershipFile(home), membershipSchema.parse(membership));
}

/** True while the invitation's secret stands where the crawler's own key will. */
export function isJoining({ key }: Membership): boolean {
  return key.startsWith("inv_");
}
