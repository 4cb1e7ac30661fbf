/**
 * A release of the crawler: one bundled file and a manifest signed offline, verified by whoever is about to
 * believe it: the command that publishes it, and the dock that runs it. Also the signed list of releases that
 * are never to run again. Pure: keys, the time and what is known come in; the answer is the manifest, or why not.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { digest, words } from "./fields.ts";
import { releaseVersion } from "./messages.ts";
import { type Envelope, envelope, maxRotations, openEnvelope, type Refused } from "./release-envelope.ts";

/** Largest bundle; today's is 5 MB. */
export const maxBundleBytes: number = 64 * 1024 * 1024;
/** A manifest from so far ahead of the clock is not believed: somebody's clock is wrong. */
const maxClockDifferenceMs = 86_400_000;

const product = z.literal("nearcrawl-crawler");

export const releaseManifest = z.strictObject({
  product,
  version: releaseVersion,
  /** Grows with every signing: a dock never goes back to a smaller one. */
  sequence: z.int().min(1),
  /** SHA-256 of the bundle, hex. */
  digest,
  bytes: z.int().min(1).max(maxBundleBytes),
  /** The commit it was made of; null: of sources that were not committed. */
  builtFrom: z
    .string()
    .regex(/^[0-9a-f]{7,64}$/)
    .nullable(),
  createdAt: z.iso.datetime(),
  /** Not to be started on any machine from then on where it does not run yet. */
  expiresAt: z.iso.datetime(),
  /** The oldest dock that can run it. */
  oldestDock: releaseVersion,
  protocolVersions: z.array(z.int().min(1).max(10_000)).min(1).max(8),
  /** For the partner's administrator: what changes. */
  notes: words,
});
export type ReleaseManifest = z.infer<typeof releaseManifest>;

/** The whole list each time: the one with the highest sequence counts. */
export const releaseRevocations = z.strictObject({
  product,
  sequence: z.int().min(1),
  createdAt: z.iso.datetime(),
  digests: z.array(digest).max(1000),
  /** Of the last one that was added. */
  reason: words,
});
export type ReleaseRevocations = z.infer<typeof releaseRevocations>;

/** `/releases/current.json`: what a dock without a release asks for. */
export const currentRelease = z.object({
  /** Of the newest release that is offered to all; null: there is none. */
  manifest: envelope.nullable(),
  revocations: envelope.nullable(),
  rotations: z.array(envelope).max(maxRotations),
});
export type CurrentRelease = z.infer<typeof currentRelease>;

export interface ManifestConditions {
  /** Of `trustedKeys`. */
  readonly keys: readonly string[];
  readonly now: Date;
  /** Of the newest manifest that was ever accepted here; 0: none was. */
  readonly newestSequence: number;
  /** Of `verifyRevocations`; null: no release was ever revoked. */
  readonly revocations: ReleaseRevocations | null;
  /** Null: it is not to run here, so no dock has to fit. */
  readonly dockVersion: string | null;
  /** When it is at hand: its length and digest must be the manifest's. */
  readonly bundle?: Uint8Array;
}

/** Everything that has to hold before a release may run. */
export function verifyManifest(
  signed: Envelope,
  conditions: ManifestConditions,
): { readonly ok: true; readonly manifest: ReleaseManifest } | Refused {
  const { keys } = conditions;
  const opened = openEnvelope(signed, { kind: "release", keys, schema: releaseManifest });
  if ("refused" in opened) return opened;
  const manifest = opened.value;
  const refused = wrongTime(manifest, conditions.now) ?? notWanted(manifest, conditions);
  if (refused !== null) return { refused };
  const unlike = conditions.bundle === undefined ? null : bundleFault(manifest, conditions.bundle);
  return unlike === null ? { ok: true, manifest } : { refused: unlike };
}

/** `newestSequence`: of the list that is kept; 0: none is. An older list than that is refused. */
export function verifyRevocations(
  signed: Envelope,
  { keys, newestSequence }: { readonly keys: readonly string[]; readonly newestSequence: number },
): { readonly ok: true; readonly revocations: ReleaseRevocations } | Refused {
  const opened = openEnvelope(signed, { kind: "revocations", keys, schema: releaseRevocations });
  if ("refused" in opened) return opened;
  const { sequence } = opened.value;
  if (sequence < newestSequence) {
    return { refused: `the list of revoked releases has number ${sequence}, ${newestSequence} is known` };
  }
  return { ok: true, revocations: opened.value };
}

/** Why these bytes are not the manifest's bundle; null: they are. */
function bundleFault(manifest: ReleaseManifest, bundle: Uint8Array): string | null {
  if (bundle.byteLength !== manifest.bytes) {
    return `the bundle has ${bundle.byteLength} bytes, its manifest says ${manifest.bytes}`;
  }
  const found = createHash("sha256").update(bundle).digest("hex");
  return found === manifest.digest ? null : `the bundle's SHA-256 is ${found}, not ${manifest.digest}`;
}

/** Below zero: `a` is older. 1.4.0-beta1 is older than 1.4.0, and 1.4 is 1.4.0. */
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
    return `${version} is older than a release that was here before (number ${sequence}, not ${newestSequence} or more)`;
  }
  return dockVersion !== null && compareVersions(dockVersion, oldestDock) < 0
    ? `${version} needs supervisor ${oldestDock} or newer, this one is ${dockVersion}`
    : null;
}
