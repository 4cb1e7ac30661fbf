/**
 * What is signed offline: manifests, lists of revoked releases, key rotations. Each gets the millisecond of its signing
 * as its number, so that it is above every earlier one without anybody having to keep count.
 */
import { createHash, type KeyObject } from "node:crypto";
import type { z } from "zod";
import { UsageError } from "#core/errors";
import { protocolVersions } from "#protocol/coordinator-messages";
import {
  type ReleaseManifest,
  type ReleaseRevocations,
  releaseManifest,
  releaseRevocations,
} from "#protocol/release";
import {
  type Envelope,
  type KeyRotation,
  keyRotation,
  rawPublicKey,
  signBody,
} from "#protocol/release-envelope";

export const defaultExpiresDays = 90;
/** The first dock there is; a release that asks more of its dock says so. */
export const firstDock = "1.0.0";

const dayMs = 86_400_000;
const product = "nearcrawl-crawler";

export interface SigningWishes {
  readonly version: string;
  readonly notes: string;
  readonly expiresDays: number;
  readonly oldestDock: string;
  readonly builtFrom: string | null;
  /** Null: the millisecond of the signing. */
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
    protocolVersions: [...protocolVersions],
    notes: wishes.notes,
  });
  const [first, ...more] = keys.map((key) => signBody("release", manifest, key));
  if (!first) throw new UsageError("nobody has signed: name a key with --key");
  const signatures = [...first.signatures, ...more.flatMap((one) => one.signatures)];
  return { manifest, signed: { ...first, signatures } };
}

export function signRevocations(
  list: Pick<ReleaseRevocations, "digests" | "reason">,
  key: KeyObject,
  now: Date,
): Envelope {
  const body = { product, sequence: numberOf(now), createdAt: now.toISOString(), ...list };
  return signBody("revocations", checked(releaseRevocations, body), key);
}

/** Signed by the old key; `keepOld`: both count from then on. */
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
