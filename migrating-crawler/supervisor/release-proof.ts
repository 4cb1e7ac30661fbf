/**
 * What lies on the disk is what was signed: before every start the manifest beside the bundle is verified again, and
 * the bundle against it. The state that names a release is a memory, no proof.
 */
import { releaseManifest } from "#protocol/release";
import { maxEnvelopeBytes, openEnvelope, readEnvelope } from "#protocol/release-envelope";
import type { ReleaseShelf } from "./release-shelf.ts";
import { type ReleaseSource, SourceFailure } from "./release-source.ts";
import type { KeptRelease } from "./release-state.ts";
import type { Trust } from "./release-trust.ts";

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
