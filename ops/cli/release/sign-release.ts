/**
 * Texts that are signed offline: manifests, revocation lists, key rotations, roots and timestamps. Each is numbered by the
 * millisecond of its signing, which exceeds all earlier numbers without a counter.
 */
import { createHash, type KeyObject } from "node:crypto";
import type { z } from "zod";
import { UsageError } from "#core/errors";
import { crawlerVersions } from "#protocol/coordinator-messages";
import {
  type KeyRotation,
  keyRotation,
  type ReleaseManifest,
  type ReleaseRevocations,
  type ReleaseTimestamp,
  type RootRoles,
  releaseManifest,
  releaseRevocations,
  releaseTimestamp,
  rootRoles,
} from "#protocol/release";
import {
  coSign,
  type Envelope,
  rawPublicKey,
  type SignedKind,
  signBody,
  unverifiedBody,
} from "#protocol/release-envelope";

export const defaultExpiresDays = 90;
/** The first version of the supervisor. A release may require a later one. */
export const firstSupervisor = "1.0.0";

const dayMs = 86_400_000;
const product = "nearcrawl-crawler";

interface SigningWishes {
  readonly version: string;
  readonly notes: string;
  readonly expiresDays: number;
  readonly oldestDock: string;
  readonly builtFrom: string | null;
  /** Default (null): the millisecond of the signing. */
  readonly sequence: number | null;
}

export function signManifest(
  bundle: Uint8Array,
  wishes: SigningWishes,
  { keys, now }: { readonly keys: readonly KeyObject[]; readonly now: Date },
): { readonly manifest: ReleaseManifest; readonly signed: Envelope } {
  const manifest = checked(releaseManifest, {
    product,
    version: wishes.version,
    sequence: wishes.sequence ?? numberOf(now),
    digest: createHash("sha256").update(bundle).digest("hex"),
    bytes: bundle.byteLength,
    builtFrom: wishes.builtFrom,
    createdAt: now.toISOString(),
    expiresAt: new Date(now.getTime() + wishes.expiresDays * dayMs).toISOString(),
    oldestDock: wishes.oldestDock,
    protocolVersions: [...crawlerVersions],
    notes: wishes.notes,
  });
  return { manifest, signed: signedByAll("release", manifest, keys) };
}

/** Signs a statement of who signs what from now on. */
export function signRoot(
  roles: RootRoles["roles"],
  keys: readonly KeyObject[],
  now: Date,
): { readonly root: RootRoles; readonly signed: Envelope } {
  const root = checked(rootRoles, { product, sequence: numberOf(now), createdAt: now.toISOString(), roles });
  return { root, signed: signedByAll("root", root, keys) };
}

/** Signs a statement of what is newest, which is valid for this many days. */
export function signTimestamp(
  { days, ...newest }: Pick<ReleaseTimestamp, "release" | "revocations"> & { readonly days: number },
  keys: readonly KeyObject[],
  now: Date,
): { readonly timestamp: ReleaseTimestamp; readonly signed: Envelope } {
  const expiresAt = new Date(now.getTime() + days * dayMs).toISOString();
  const body = { product, sequence: numberOf(now), createdAt: now.toISOString(), expiresAt, ...newest };
  const timestamp = checked(releaseTimestamp, body);
  return { timestamp, signed: signedByAll("timestamp", timestamp, keys) };
}

/** Returns a signed text's kind by its content, which the signatures cover, or null when the kind is unknown. */
export function kindOf(signed: Envelope): SignedKind | null {
  const text = unverifiedBody(signed);
  return kinds.find(([, schema]) => schema.safeParse(text).success)?.[0] ?? null;
}

const kinds: readonly (readonly [SignedKind, z.ZodType])[] = [
  ["release", releaseManifest],
  ["revocations", releaseRevocations],
  ["timestamp", releaseTimestamp],
  ["key", keyRotation],
  ["root", rootRoles],
];

function signedByAll(kind: SignedKind, value: unknown, [first, ...more]: readonly KeyObject[]): Envelope {
  if (!first) throw new UsageError("nobody has signed: name a key with --key");
  return more.reduce((signed, key) => coSign(signed, kind, key), signBody(kind, value, first));
}

export function signRevocations(
  list: Pick<ReleaseRevocations, "digests" | "reason">,
  key: KeyObject,
  now: Date,
): Envelope {
  const body = { product, sequence: numberOf(now), createdAt: now.toISOString(), ...list };
  return signBody("revocations", checked(releaseRevocations, body), key);
}

/** The old key signs the rotation. With `keepOld`, both keys are valid afterwards. */
export function signRotation(
  keys: { readonly old: KeyObject; readonly next: KeyObject; readonly keepOld: boolean },
  now: Date,
): { readonly rotation: KeyRotation; readonly signed: Envelope } {
  const rotation = checked(keyRotation, {
    product,
    sequence: numberOf(now),
    newKey: rawPublicKey(keys.next),
    retires: keys.keepOld ? null : rawPublicKey(keys.old),
    createdAt: now.toISOString(),
  });
  if (rotation.newKey === rawPublicKey(keys.old)) throw new UsageError("--old and --new are the same key");
  return { rotation, signed: signBody("key", rotation, keys.old) };
}

const numberOf = (now: Date) => now.getTime();

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.infer<Schema> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new UsageError(`this cannot be signed: ${issue?.path.join(".")}: ${issue?.message}`);
}
