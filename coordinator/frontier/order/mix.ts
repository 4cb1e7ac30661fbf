/**
 * How a lease is filled from new and old URLs: Anansi gives 90 of 100 work units to new ones (section 5.1, α = 0.9). A
 * host has fewer slots than a hundred, so what falls between two whole numbers is carried from a host's lease to its
 * next: over many leases the share is exact, however small they are. A list that runs out leaves its slots to the other.
 */

/**
 * Slots of `slots` for what has `share` of them, with what was carried here, and what is carried on: below 1; below 0
 * where more was had than the share.
 */
export function shareOf(
  slots: number,
  share: number,
  carry: number,
): { readonly slots: number; readonly carry: number } {
  const exact = slots * share + carry;
  // What is a whole number but for rounding is one.
  const whole = Math.min(slots, Math.max(0, Math.floor(exact + roundingError)));
  return { slots: whole, carry: Math.min(1, exact - whole) };
}

export const roundingError = 1e-9;

/** What is carried on after `taken` slots that all went to what has `share` of them: the others are owed theirs. */
export function owedAfter(taken: number, share: number, carry: number): number {
  return Math.max(-mostOwed, carry - taken * (1 - share));
}

/** Where there were no others for long, they are not made up for with more than a slice. */
export const mostOwed = 20;

/** Of a host that no lease was mixed for yet: by its hash, so that over many hosts the share is right from the start. */
export function firstCarry(hostHash: string): number {
  return Number(((BigInt(hostHash) % 1000n) + 1000n) % 1000n) / 1000;
}

/** The due URLs of both lists, each the most urgent first, as a lease takes them: old ones spread among the new. */
export function mixLists<Url>(
  lists: { readonly newUrls: readonly Url[]; readonly oldUrls: readonly Url[] },
  slots: number,
  slotsForNew: number,
): Url[] {
  const { newUrls, oldUrls } = lists;
  return spreadLists([newUrls, slotsForNew], [oldUrls, slots - slotsForNew]).slice(0, slots);
}

/** Two lists as one, each with so many places in what is taken of it; of equals the first list's comes first. */
export function spreadLists<One>(
  ...lists: readonly [
    first: readonly [ones: readonly One[], quota: number],
    second: readonly [ones: readonly One[], quota: number],
  ]
): One[] {
  const placed = lists.flatMap(([ones, quota]) => ones.map((one, index) => placeOf(one, index + 1, quota)));
  // Sorting keeps the order of equals.
  return placed.sort((a, b) => a.at - b.at).map(({ one }) => one);
}

/** Up to 1 within the quota, above it beyond: what another list leaves. */
function placeOf<One>(one: One, place: number, quota: number) {
  return { one, at: place / Math.max(quota, 0.5) };
}
