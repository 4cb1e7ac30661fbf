/** Publishes a release for supervisors after verifying it. */

import type { ReleaseFleetStore } from "#coordinator/run/releases/fleet-store";
import type { ReleaseKeyStore } from "#coordinator/run/releases/key-store";
import type { ReleaseStore } from "#coordinator/run/releases/release-store";
import type { Change } from "#core/audit";
import { UsageError } from "#core/errors";
import { type ReleaseManifest, verifyManifest, verifyRevocations } from "#protocol/release";
import type { Envelope } from "#protocol/release-envelope";

/** Throws a UsageError with the reason when it is refused. */
export async function publishRelease(
  { signed, bundle }: { readonly signed: Envelope; readonly bundle: Uint8Array },
  { releases, keys }: Pick<ReleaseStores, "releases" | "keys">,
  now: Date,
): Promise<ReleaseManifest> {
  const roles = await keys.roles();
  if (roles.releases.keys.length === 0) {
    throw new UsageError(
      "this fleet has no release key yet: nearcrawl release trust KEY, with the public key",
    );
  }
  const list = await releases.revocations();
  const read = list === null ? null : verifyRevocations(list, { role: roles.revocations, newestSequence: 0 });
  const verified = verifyManifest(signed, {
    role: roles.releases,
    now,
    newestSequence: 0,
    revocations: read !== null && "ok" in read ? read.revocations : null,
    dockVersion: null,
    bundle,
  });
  if ("refused" in verified) throw new UsageError(`the release is refused: ${verified.refused}`);
  const refused = await releases.publish({ manifest: verified.manifest, signed, bundle, now });
  if (refused !== null) throw new UsageError(`the release is refused: ${refused}`);
  return verified.manifest;
}

// The stores of releases, for commands that work at the coordinator's database.

export interface ReleaseStores {
  readonly releases: ReleaseStore;
  readonly releaseFleet: ReleaseFleetStore;
  readonly keys: ReleaseKeyStore;
  /** Records a change in the audit log. */
  record(change: Change): Promise<void>;
}
