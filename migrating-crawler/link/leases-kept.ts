/** How long a crawler that lost the link may work on what it was leased: no longer than the coordinator leaves it to it. */
import type { CoordinatorWelcome } from "#protocol/coordinator-messages";
import { maxHeldLeases } from "#protocol/messages";

/** The coordinator may notice the loss of the link by so many heartbeats sooner than this crawler. */
const noticedSooner = 2;

export function leasesKeptMs({ departureSeconds, heartbeatSeconds }: CoordinatorWelcome): number {
  if (departureSeconds === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, departureSeconds - noticedSooner * heartbeatSeconds) * 1000;
}

/** For the hello; null when they are too many to list. */
export function heldLeases(leaseIds: readonly string[]): string[] | null {
  // Results of a lease that the disk has lost are under "0", which is no lease.
  const held = new Set(leaseIds.filter((leaseId) => leaseId !== "0"));
  return held.size > maxHeldLeases ? null : [...held];
}
