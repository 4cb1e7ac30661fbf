/** What invitations say of this coordinator: where crawlers reach it, its certificate's key, and the release keys. */

import type { Pool } from "pg";
import { UsageError } from "#core/errors";
import { canParseUrl } from "#core/ip/can-parse-url";
import { isCoordinatorUrl } from "#protocol/coordinator-url";
import type { InvitingCoordinator } from "./flows/issue-invitation.ts";
import { readCoordinatorPlace } from "./postgres/coordinator-place.ts";
import { createReleaseKeyStore } from "./postgres/release-key-store.ts";

export interface StatedPlace {
  /** In place of what the coordinator said of itself. */
  readonly url?: string;
  /** Null: the public authorities decide. */
  readonly pin?: string | null;
}

/**
 * As the coordinator that last started on this database said, changed by what is stated. Throws a UsageError where
 * that is nothing that a partner could connect to.
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
      `partners cannot reach the coordinator at ${given}: it must be wss://HOST[:PORT]/crawler (ws:// on this machine alone); set publicUrl in the coordinator's settings, or say --url`,
    );
  }
  const isSecure = coordinatorUrl.startsWith("wss:");
  const certificatePin = stated.pin === undefined ? (place?.certificatePin ?? null) : stated.pin;
  const releaseKeys = await createReleaseKeyStore(pool).trusted();
  return { coordinatorUrl, certificatePin: isSecure ? certificatePin : null, releaseKeys };
}

/** Of a page's address, where the crawlers' socket is beside it. */
function socketUrl(text: string): string {
  if (!canParseUrl(text)) return text;
  const url = new URL(text);
  if (url.pathname === "/") url.pathname = "/crawler";
  return url.href.replace(/^http/, "ws");
}
