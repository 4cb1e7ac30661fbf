/** Reads what invitations state about this coordinator: its address, its certificate's key, and the release keys. */
import type { Pool } from "pg";
import { UsageError } from "#core/errors";
import { isCoordinatorUrl } from "#protocol/invitation";
import { readCoordinatorPlace, socketUrl } from "../../place/crawlers/coordinator-place-store.ts";
import { createReleaseKeyStore, createReleaseStore } from "../releases/release-store.ts";
import { mayRun } from "../releases/staging.ts";
import type { InvitingCoordinator } from "./invitations.ts";

export interface StatedPlace {
  /** Replaces the address that the coordinator itself stated. */
  readonly url?: string;
  /** Replaces the stated key. `null` relies on public certificate authorities. */
  readonly pin?: string | null;
}

/**
 * Returns what the coordinator that started last stated, with the replacements. Throws a UsageError if a partner
 * could not connect to it, or if there is no release key to pin, since such a crawler could never accept a release.
 */
export async function invitingCoordinator(
  pool: Pool,
  stated: StatedPlace = {},
): Promise<InvitingCoordinator> {
  const place = await readCoordinatorPlace(pool);
  const given = stated.url ?? place?.webUrl;
  if (given === undefined) {
    throw new UsageError(
      "where crawlers reach the coordinator is not known, since none has started with this database: say --url wss://HOST/crawler",
    );
  }
  const coordinatorUrl = socketUrl(given);
  if (!isCoordinatorUrl(coordinatorUrl)) {
    throw new UsageError(
      `partners cannot reach the coordinator at ${given}: it must be wss://HOST[:PORT]/crawler (ws:// on this ` +
        "machine alone); set publicUrl in the coordinator's settings, or say --url",
    );
  }
  const isSecure = coordinatorUrl.startsWith("wss:");
  const certificatePin = stated.pin === undefined ? (place?.certificatePin ?? null) : stated.pin;
  const { keys: releaseKeys, threshold: releaseThreshold } = await createReleaseKeyStore(pool).pinned();
  if (releaseKeys.length === 0) throw new UsageError(noReleaseKey);
  const firstRelease = await releaseForAll(pool);
  return {
    coordinatorUrl,
    certificatePin: isSecure ? certificatePin : null,
    ...{ releaseKeys, releaseThreshold, firstRelease },
  };
}

const noReleaseKey =
  "there is no release key that an invitation could pin, and without one a crawler takes no release: the " +
  "coordinator makes a key as it starts, where the crawler's bundle is beside it (npm run build) and its home " +
  "can be written; or run nearcrawl release trust KEY for a key of yours";

/** Returns the release that new crawlers are offered. */
async function releaseForAll(pool: Pool): Promise<string | null> {
  const now = new Date();
  const releases = await createReleaseStore(pool).list();
  return releases.find((release) => release.stage === "all" && mayRun(release, now))?.version ?? null;
}
