/** How long a crawler that lost the link may work on what it was leased: no longer than the coordinator leaves it to it. */
import type { CoordinatorWelcome } from "#protocol/messages";

/** The coordinator may notice the loss of the link by so many heartbeats sooner than this crawler. */
const noticedSooner = 2;

export function leasesKeptMs({ departureSeconds, heartbeatSeconds }: CoordinatorWelcome): number {
  if (departureSeconds === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, departureSeconds - noticedSooner * heartbeatSeconds) * 1000;
}
