/**
 * Whose signatures a supervisor believes, for each kind of text (The Update Framework's roles). It begins with the keys
 * that its invitation pinned, which may do everything. From there it follows, in the order of their numbers:
 *
 *   rotations   name a new key, may retire an old one, and are signed by a key that counts at that moment
 *   roots       state all roles anew, and are signed by as many root keys as it takes by the roles before, and by their own
 *
 * After a root no rotation is followed: one key alone changes nothing any more. Supervisors keep what they have
 * followed, so whoever finds a retired key later can put nothing in the place of it; one that joined later has pinned
 * later keys, and passes over what came before.
 */
import { z } from "zod";
import { mostCoordinators } from "./coordinator-messages.ts";
import { publicKey } from "./identity.ts";
import {
  type Envelope,
  envelope,
  maxSignatures,
  openEnvelope,
  type Role,
  unverifiedBody,
} from "./release-envelope.ts";

/** The most rotations and roots that are followed: one a month for eight years. */
export const maxRotations = 100;

const product = z.literal("nearcrawl-crawler");

export const keyRotation = z.strictObject({
  product,
  sequence: z.int().min(1),
  newKey: publicKey,
  /** A key that stops counting now; null when both keys count. */
  retires: publicKey.nullable(),
  createdAt: z.iso.datetime(),
});
export type KeyRotation = z.infer<typeof keyRotation>;

const role = z
  .strictObject({
    keys: z.array(publicKey).min(1).max(8),
    threshold: z.int().min(1).max(maxSignatures),
  })
  .refine(({ keys }) => new Set(keys).size === keys.length, { error: "names a key twice" })
  .refine(({ keys, threshold }) => threshold <= keys.length, { error: "takes more keys than it names" });

/** The content of a root, which `nearcrawl release root` reads from a file. */
export const statedRoles = z.strictObject({
  root: role,
  releases: role,
  revocations: role,
  /** Signs the periodic statement of what is newest. */
  timestamp: role,
  /** Domains, besides the invitation's, in which a crawler trusts coordinators that another one names to it. */
  coordinators: z.array(z.hostname()).max(mostCoordinators).optional(),
});

export const rootRoles = z.strictObject({
  product,
  sequence: z.int().min(1),
  createdAt: z.iso.datetime(),
  roles: statedRoles,
});
export type RootRoles = z.infer<typeof rootRoles>;

export interface Roles {
  readonly root: Role;
  readonly releases: Role;
  readonly revocations: Role;
  readonly timestamp: Role;
  readonly coordinators?: readonly string[] | undefined;
}

/** `/releases/keys.json`: all rotations and roots in order. */
export const keysFile = z.object({ rotations: z.array(envelope).max(maxRotations) });
export type KeysFile = z.infer<typeof keysFile>;

/** Each key of an invitation has all roles, with the invitation's threshold. */
const pinnedRoles = (pinned: Role): Roles => ({
  root: pinned,
  releases: pinned,
  revocations: pinned,
  timestamp: pinned,
});

export interface FollowedRoles {
  /** The roles after the last valid link. */
  readonly roles: Roles;
  /** All roles that ever held, including the last: what was signed then keeps running until it is revoked. */
  readonly before: readonly Roles[];
  /** After a root no rotation is followed. */
  readonly hasRoot: boolean;
  /** The valid links in order, which are worth keeping. */
  readonly followed: readonly Envelope[];
}

/**
 * Skips links that lack the required signatures or are numbered no higher than the last followed one. `links` holds the stored
 * ones first; served ones may repeat them.
 */
export function followRoles(pinned: Role, links: readonly Envelope[]): FollowedRoles {
  const before: Roles[] = [pinnedRoles(pinned)];
  const followed: Envelope[] = [];
  let hasRoot = false;
  let last = 0;
  // Both the stored and the served links must fit.
  for (const signed of links.slice(0, 2 * maxRotations)) {
    const roles = before.at(-1)!;
    const stated = openRoot(signed, roles);
    const next = stated ?? (hasRoot ? null : openRotation(signed, roles.root));
    if (next === null || next.sequence <= last) continue;
    hasRoot ||= stated !== null;
    last = next.sequence;
    before.push(next.roles);
    followed.push(signed);
  }
  return { roles: before.at(-1)!, before, hasRoot, followed };
}

/** Returns the number of a rotation or root without verification; 0 when it is neither. */
export function numberOfLink(signed: Envelope): number {
  const { data } = z.object({ sequence: z.int().min(1) }).safeParse(unverifiedBody(signed));
  return data?.sequence ?? 0;
}

interface Step {
  readonly sequence: number;
  readonly roles: Roles;
}

/** A root must satisfy both the previous roles and its own (The Update Framework, section 5.3.4). */
function openRoot(signed: Envelope, before: Roles): Step | null {
  const opened = openEnvelope(signed, { kind: "root", role: before.root, schema: rootRoles });
  if ("refused" in opened) return null;
  const { sequence, roles } = opened.value;
  const own = openEnvelope(signed, { kind: "root", role: roles.root, schema: rootRoles });
  return "refused" in own ? null : { sequence, roles };
}

function openRotation(signed: Envelope, before: Role): Step | null {
  const opened = openEnvelope(signed, { kind: "key", role: before, schema: keyRotation });
  if ("refused" in opened) return null;
  const { sequence, newKey, retires } = opened.value;
  if (newKey === retires) return null;
  const keys = [...new Set([...before.keys, newKey])].filter((key) => key !== retires);
  // A pinned threshold stays in force.
  return { sequence, roles: pinnedRoles({ keys, threshold: Math.min(before.threshold, keys.length) }) };
}
