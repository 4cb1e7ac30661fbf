/**
 * What lies on the disk is what was signed: before every start the manifest beside the bundle is verified again, and
 * the bundle against it. The state that names a release is a memory, no proof.
 */

import { z } from "zod";
import { type ReleaseRevocations, releaseManifest, verifyRevocations } from "#protocol/release";
import {
  type Envelope,
  envelope,
  followRotations,
  keysFile,
  maxEnvelopeBytes,
  maxRotations,
  openEnvelope,
  readEnvelope,
} from "#protocol/release-envelope";
import type { KeptRelease } from "../core/release-state.ts";
import { type ReleaseSource, SourceFailure } from "./release-source.ts";
import type { ReleaseShelf } from "./release-store.ts";

/** Why it must not be started; null: it may. Expiry is for releases that do not run yet, and no matter here. */
export async function faultOfKept(
  release: KeptRelease,
  { shelf, trust }: { readonly shelf: ReleaseShelf; readonly trust: Trust },
): Promise<string | null> {
  const signed = shelf.readManifest(release.digest);
  if (signed === null) return "its signed manifest is gone";
  const opened = openEnvelope(signed, { kind: "release", keys: trust.everTrusted, schema: releaseManifest });
  if ("refused" in opened) return `its manifest: ${opened.refused}`;
  const { digest, bytes } = opened.value;
  if (digest !== release.digest || bytes !== release.bytes) return "its manifest is another release's";
  if (trust.revocations?.digests.includes(digest)) return `it was revoked: ${trust.revocations.reason}`;
  return (await shelf.holds(release)) ? null : "its file is damaged or gone";
}

/** A dock before this one kept none: the coordinator has them. What comes is not believed before `faultOfKept`. */
export async function fetchMissingManifests(
  releases: readonly KeptRelease[],
  { shelf, source }: { readonly shelf: ReleaseShelf; readonly source: ReleaseSource },
): Promise<void> {
  for (const { digest } of releases.filter((release) => shelf.readManifest(release.digest) === null)) {
    try {
      const text = await source.text(`/releases/${digest}/manifest.json`, maxEnvelopeBytes);
      const signed = text === null ? null : readEnvelope(text);
      if (signed !== null && !("refused" in signed)) shelf.writeManifest(digest, signed);
    } catch (error) {
      // Without a manifest it is not started; it is taken anew when the coordinator is reached.
      if (!(error instanceof SourceFailure)) throw error;
    }
  }
}

// Whom the dock believes, and what is never to run again: the pinned keys carried on by rotations, and the list of
// revoked releases. Both are signed, kept on the disk as they were served, and never go back to an older one.

const rotationsFile = "rotations.json";
const revocationsFile = "revocations.json";

/** Of keys.json: 100 rotations have some 80 KB. */
const maxServedRotationBytes = 1024 * 1024;

const keptRotations = z.array(envelope).max(2 * maxRotations);

export interface Trust {
  readonly keys: readonly string[];
  /** Those that were retired since included: what they signed before then runs on until it is revoked. */
  readonly everTrusted: readonly string[];
  /** Null: no release was ever revoked. */
  readonly revocations: ReleaseRevocations | null;
}

interface TrustSettings {
  readonly shelf: ReleaseShelf;
  readonly pinnedKeys: readonly string[];
}

/** What was believed last. */
export function keptTrust({ shelf, pinnedKeys }: TrustSettings): Trust {
  const { keys, everTrusted } = followRotations(pinnedKeys, shelf.read(rotationsFile, keptRotations) ?? []);
  return { keys, everTrusted, revocations: keptRevocations(shelf, everTrusted) };
}

/** Asks the coordinator for both lists and keeps what is newer. Throws a SourceFailure when it cannot be asked, or answers with what is not genuine. */
export async function refreshTrust(
  settings: TrustSettings & { readonly source: ReleaseSource },
): Promise<Trust> {
  const { source } = settings;
  const served = await source.text("/releases/keys.json", maxServedRotationBytes);
  takeRotations(settings, served === null ? [] : rotationsIn(served));
  const trust = keptTrust(settings);
  const signed = await source.text("/releases/revocations.json", maxEnvelopeBytes);
  if (signed === null && trust.revocations === null) return trust;
  if (signed === null)
    throw new SourceFailure("the coordinator no longer serves the list of revoked releases");
  return { ...trust, revocations: takeRevocations(settings.shelf, { signed, trust }) };
}

function takeRotations({ shelf, pinnedKeys }: TrustSettings, served: readonly Envelope[]): void {
  const kept = shelf.read(rotationsFile, keptRotations) ?? [];
  const { followed } = followRotations(pinnedKeys, [...kept, ...served]);
  if (followed.length > kept.length) shelf.write(rotationsFile, followed);
}

function takeRevocations(
  shelf: ReleaseShelf,
  { signed, trust }: { readonly signed: string; readonly trust: Trust },
): ReleaseRevocations {
  const read = readEnvelope(signed);
  if ("refused" in read) throw new SourceFailure(`the list of revoked releases: ${read.refused}`);
  const newestSequence = trust.revocations?.sequence ?? 0;
  const verified = verifyRevocations(read, { keys: trust.keys, newestSequence });
  if ("refused" in verified) throw new SourceFailure(`the list of revoked releases: ${verified.refused}`);
  if (verified.revocations.sequence > newestSequence) shelf.write(revocationsFile, read);
  return verified.revocations;
}

/** It was verified when it was taken; its key may have been retired since. */
function keptRevocations(shelf: ReleaseShelf, keys: readonly string[]): ReleaseRevocations | null {
  const kept = shelf.read(revocationsFile, envelope);
  const verified = kept === null ? null : verifyRevocations(kept, { keys, newestSequence: 0 });
  return verified !== null && "ok" in verified ? verified.revocations : null;
}

function rotationsIn(text: string): readonly Envelope[] {
  try {
    return keysFile.parse(JSON.parse(text)).rotations;
  } catch (error) {
    throw new SourceFailure("keys.json is not a list of key rotations", { cause: error });
  }
}
