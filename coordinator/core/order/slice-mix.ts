/**
 * How a lease is filled from new and old URLs: Anansi gives 90 of 100 work units to new ones (section 5.1, α = 0.9). A
 * host has fewer slots than a hundred, so what falls between two whole numbers goes by turns: over many leases the
 * share is exact, however small they are. A list that runs out leaves its slots to the other.
 */

/** Slots for new URLs of `slots`. `turn`, in [0, 1), differs from lease to lease. */
export function newSlots(slots: number, newShare: number, turn: number): number {
  return Math.floor(slots * newShare + turn + 1e-9);
}

/** The due URLs of both lists, each the most urgent first, as a lease takes them: old ones spread among the new. */
export function mixLists<Url>(
  lists: { readonly newUrls: readonly Url[]; readonly oldUrls: readonly Url[] },
  slots: number,
  slotsForNew: number,
): Url[] {
  const placed = [
    ...lists.newUrls.map((url, index) => placeOf(url, index + 1, slotsForNew)),
    ...lists.oldUrls.map((url, index) => placeOf(url, index + 1, slots - slotsForNew)),
  ];
  // Sorting keeps the order of equals: new ones first.
  placed.sort((a, b) => a.at - b.at);
  return placed.slice(0, slots).map(({ url }) => url);
}

/** Up to 1 within the quota, above it beyond: what another list leaves. */
function placeOf<Url>(url: Url, place: number, quota: number) {
  return { url, at: place / Math.max(quota, 0.5) };
}
