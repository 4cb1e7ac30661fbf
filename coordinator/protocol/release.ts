/**
 * A release of the crawler is one bundled file and a manifest signed offline. Both the publishing command and the running
 * supervisor verify it, and the signed list of revoked releases. These functions are pure: given keys, time and known state,
 * they return the manifest or why it is refused.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { mostCoordinators } from "./coordinator-messages.ts";
import { digest, words } from "./fields.ts";
import { publicKey } from "./identity.ts";
import { releaseVersion } from "./messages.ts";
import {
  type Envelope,
  envelope,
  maxSignatures,
  openEnvelope,
  type Refused,
  type Role,
  unverifiedBody,
} from "./release-envelope.ts";

/** Maximum size of a bundle. The current one has 5 MB. */
export const maxBundleBytes: number = 64 * 1024 * 1024;
/** A statement dated further in the future is refused, because some clock must be wrong. */
const maxClockDifferenceMs = 86_400_000;
/** Maximum validity of a statement of what is newest, even if it states a longer one. */
export const maxTimestampMs: number = 60 * 86_400_000;

/** Maximum number of rotations and roots that are followed (one a month for eight years). */
export const maxRotations = 100;

const product = z.literal("nearcrawl-crawler");

export const releaseManifest = z.strictObject({
  product,
  version: releaseVersion,
  /** Increases with every signing. A supervisor never returns to a smaller sequence and accepts none beyond its clock in ms. */
  sequence: z.int().min(1),
  digest,
  bytes: z.int().min(1).max(maxBundleBytes),
  builtFrom: z
    .string()
    .regex(/^[0-9a-f]{7,64}$/)
    .nullable(),
  createdAt: z.iso.datetime(),
  /** After this instant, only machines that already run it start it. */
  expiresAt: z.iso.datetime(),
  /** The oldest version of the supervisor that can run it. */
  oldestDock: releaseVersion,
  protocolVersions: z.array(z.int().min(1).max(10_000)).min(1).max(8),
  notes: words,
});
export type ReleaseManifest = z.infer<typeof releaseManifest>;

/** Each list is complete; the one with the highest sequence is valid. */
export const releaseRevocations = z.strictObject({
  product,
  sequence: z.int().min(1),
  createdAt: z.iso.datetime(),
  digests: z.array(digest).max(1000),
  reason: words,
});
export type ReleaseRevocations = z.infer<typeof releaseRevocations>;

/**
 * States what is newest. It is signed repeatedly with a short validity, so that nobody can keep supervisors on an old state
 * by serving nothing else (a freeze attack, The Update Framework section 1.5.2).
 */
export const releaseTimestamp = z.strictObject({
  product,
  sequence: z.int().min(1),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  /** The newest release that is offered to all crawlers, or null. */
  release: z.strictObject({ version: releaseVersion, sequence: z.int().min(1) }).nullable(),
  /** The sequence of the revocation list; 0 when there is none. */
  revocations: z.int().min(0),
});
export type ReleaseTimestamp = z.infer<typeof releaseTimestamp>;

/** The file `/releases/current.json`, which a supervisor without a release requests. */
export const currentRelease = z.object({
  /** The newest release that is offered to all crawlers, or null. */
  manifest: envelope.nullable(),
  revocations: envelope.nullable(),
  rotations: z.array(envelope).max(maxRotations),
});
export type CurrentRelease = z.infer<typeof currentRelease>;

export interface ManifestConditions {
  readonly role: Role;
  readonly now: Date;
  /** The highest sequence ever seen here, whether run or not; 0 if none was seen. */
  readonly newestSequence: number;
  /** The result of `verifyRevocations`; null when no release was ever revoked. */
  readonly revocations: ReleaseRevocations | null;
  /** The supervisor's version; null when the release will not run here, so that any version is accepted. */
  readonly dockVersion: string | null;
  /** If present, its length and digest must match the manifest. */
  readonly bundle?: Uint8Array;
}

export function verifyManifest(
  signed: Envelope,
  conditions: ManifestConditions,
): { readonly ok: true; readonly manifest: ReleaseManifest; readonly signers: readonly string[] } | Refused {
  const { role } = conditions;
  const opened = openEnvelope(signed, { kind: "release", role, schema: releaseManifest });
  if ("refused" in opened) return opened;
  const { value: manifest, signers } = opened;
  const refused =
    wrongTime(manifest, conditions.now) ??
    aheadOfClock(manifest.version, manifest.sequence, conditions.now) ??
    notWanted(manifest, conditions);
  if (refused !== null) return { refused };
  const unlike = conditions.bundle === undefined ? null : bundleFault(manifest, conditions.bundle);
  return unlike === null ? { ok: true, manifest, signers } : { refused: unlike };
}

/**
 * `newestSequence` is that of the stored list, or 0. An older list is refused. `now` is absent for a list that was accepted
 * before.
 */
export function verifyRevocations(
  signed: Envelope,
  {
    role,
    newestSequence,
    now,
  }: { readonly role: Role; readonly newestSequence: number; readonly now?: Date },
): { readonly ok: true; readonly revocations: ReleaseRevocations } | Refused {
  const opened = openEnvelope(signed, { kind: "revocations", role, schema: releaseRevocations });
  if ("refused" in opened) return opened;
  const { sequence } = opened.value;
  if (sequence < newestSequence) {
    return { refused: `the list of revoked releases has number ${sequence}, ${newestSequence} is known` };
  }
  const ahead = now === undefined ? null : aheadOfClock("the list of revoked releases", sequence, now);
  return ahead === null ? { ok: true, revocations: opened.value } : { refused: ahead };
}

/**
 * `newestSequence` is that of the stored statement, or 0. `now` is absent for a statement that was accepted before, because
 * it stays accepted when the clock is set back. The caller checks the expiry.
 */
export function verifyTimestamp(
  signed: Envelope,
  {
    role,
    newestSequence,
    now,
  }: { readonly role: Role; readonly newestSequence: number; readonly now?: Date },
): { readonly ok: true; readonly timestamp: ReleaseTimestamp } | Refused {
  const opened = openEnvelope(signed, { kind: "timestamp", role, schema: releaseTimestamp });
  if ("refused" in opened) return opened;
  const { sequence, createdAt, expiresAt } = opened.value;
  if (sequence < newestSequence)
    return { refused: `the statement of what is newest has number ${sequence}, ${newestSequence} is known` };
  if (Date.parse(expiresAt) - Date.parse(createdAt) > maxTimestampMs)
    return { refused: `the statement of what is newest is good until ${expiresAt}, longer than 60 days` };
  const ahead = now === undefined ? null : aheadOfClock("the statement of what is newest", sequence, now);
  return ahead === null ? { ok: true, timestamp: opened.value } : { refused: ahead };
}

/**
 * Returns why a sequence is refused, or null. Sequences are at most the signing time in ms, because honest ones could never
 * exceed a number beyond the clock (a fast-forward attack).
 */
export function aheadOfClock(what: string, sequence: number, now: Date): string | null {
  return sequence <= now.getTime() + maxClockDifferenceMs
    ? null
    : `${what} has number ${sequence}, which the clock in ms has not come to: it would shut out all that follow`;
}

function bundleFault(manifest: ReleaseManifest, bundle: Uint8Array): string | null {
  if (bundle.byteLength !== manifest.bytes) {
    return `the bundle has ${bundle.byteLength} bytes, its manifest says ${manifest.bytes}`;
  }
  const found = createHash("sha256").update(bundle).digest("hex");
  return found === manifest.digest ? null : `the bundle's SHA-256 is ${found}, not ${manifest.digest}`;
}

/** Returns a negative number when `a` is older: 1.4.0-beta1 is older than 1.4.0, and 1.4 equals 1.4.0. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [splitVersion(a), splitVersion(b)];
  for (let place = 0; place < 4; place += 1) {
    const difference = (left.numbers[place] ?? 0) - (right.numbers[place] ?? 0);
    if (difference !== 0) return difference;
  }
  if (left.suffix === right.suffix) return 0;
  if (left.suffix === "" || right.suffix === "") return left.suffix === "" ? 1 : -1;
  return left.suffix < right.suffix ? -1 : 1;
}

function splitVersion(version: string): { readonly numbers: readonly number[]; readonly suffix: string } {
  const dash = version.indexOf("-");
  const numbers = (dash < 0 ? version : version.slice(0, dash)).split(".").map(Number);
  return { numbers, suffix: dash < 0 ? "" : version.slice(dash + 1) };
}

function wrongTime(manifest: ReleaseManifest, now: Date): string | null {
  const { version, createdAt, expiresAt } = manifest;
  if (Date.parse(expiresAt) <= now.getTime()) return `${version} expired at ${expiresAt}`;
  return Date.parse(createdAt) > now.getTime() + maxClockDifferenceMs
    ? `${version} was signed at ${createdAt}, which has not come yet: look at this machine's clock`
    : null;
}

function notWanted(manifest: ReleaseManifest, conditions: ManifestConditions): string | null {
  const { version, sequence, digest: found, oldestDock } = manifest;
  const { revocations, newestSequence, dockVersion } = conditions;
  if (revocations?.digests.includes(found)) return `${version} was revoked: ${revocations.reason}`;
  if (sequence < newestSequence) {
    return `${version} is older than a release that was seen here before (number ${sequence}, not ${newestSequence} or more)`;
  }
  return dockVersion !== null && compareVersions(dockVersion, oldestDock) < 0
    ? `${version} needs supervisor ${oldestDock} or newer, this one is ${dockVersion}`
    : null;
}

// Whose signatures a supervisor accepts, for each kind of text (The Update Framework's roles). At first these are the keys
// that its invitation pinned, which have all roles. Then it follows rotations and roots in the order of their numbers. A
// rotation names a new key, may retire an old one, and is signed by a key that is valid at that moment. A root states all
// roles again and is signed by enough root keys of the previous roles and of its own. After a root, no rotation is followed,
// so a single key can change nothing any more. Supervisors keep what they have followed, so nothing is replaced with a
// retired key that is found later. A supervisor that joined later has pinned later keys and skips what came before.

export const keyRotation = z.strictObject({
  product,
  sequence: z.int().min(1),
  newKey: publicKey,
  /** A key that is no longer valid from now on; null when both keys stay valid. */
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
  /** The role that signs the periodic statement of what is newest. */
  timestamp: role,
  /** Domains, besides the invitation's, whose coordinators a crawler trusts when another one names them to it. */
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

/** The file `/releases/keys.json` with all rotations and roots in order. */
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
  /** All roles that were ever valid, including the last. What they signed keeps running until it is revoked. */
  readonly before: readonly Roles[];
  /** Whether a root was followed; after it, no rotation is. */
  readonly hasRoot: boolean;
  /** The valid links in order, which the caller should keep. */
  readonly followed: readonly Envelope[];
}

/**
 * Skips links that lack the required signatures or have no higher number than the last followed one. `links` holds the stored
 * ones first; served ones may repeat them.
 */
export function followRoles(pinned: Role, links: readonly Envelope[]): FollowedRoles {
  const before: Roles[] = [pinnedRoles(pinned)];
  const followed: Envelope[] = [];
  let hasRoot = false;
  let last = 0;
  // The bound leaves room for both the stored and the served links.
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

/** Returns the number of an unverified rotation or root, or 0 when it is neither. */
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
  // The pinned threshold stays valid.
  return { sequence, roles: pinnedRoles({ keys, threshold: Math.min(before.threshold, keys.length) }) };
}
